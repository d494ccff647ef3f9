"""The usage history for operators: found by correlation id, channel and date, by page, by command and over the API."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tasks_app.database.sql import on_postgres
from tasks_app.ids import uuid7_at
from tasks_app.models import Principal, Tenant, Usage
from tasks_app.operators.roles import VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import program
from tests.support.commands import printed
from tests.transports.admin.pages import listed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def usage(owner: Principal, number: int, **columns: Any) -> Usage:
    """Return the row of a call, one a day."""
    time = START + timedelta(days=number)
    facts = {"correlation_id": f"c{number}", "channel": f"C{number % 2}", "outcome": "executed", "task_id": "t"}
    id = f"{uuid7_at(time)[:-6]}{number:06}"
    return Usage.objects.create(id=id, created_at=time, tenant=owner.tenant, owner=owner, **facts | columns)


@pytest.fixture
def rows(olga: Principal) -> list[Usage]:
    return [usage(olga, number, skipped="<b>big.pdf" if number == 3 else "") for number in range(6)]


@pytest.mark.requirement("ZONE-19")
def test_the_admin_finds_calls_by_correlation_id_channel_and_date(viewer: Client, rows: list[Usage]) -> None:
    ids = [row.pk for row in rows]
    assert listed(viewer, "usage") == ids[::-1]
    assert listed(viewer, "usage", q=" c3 ") == [ids[3]]
    assert listed(viewer, "usage", q="c") == []
    assert listed(viewer, "usage", channel="C1") == [ids[5], ids[3], ids[1]]
    assert listed(viewer, "usage", day="2026-11-03") == [ids[2]]
    assert listed(viewer, "usage", day="2026-11-04", channel="C1") == [ids[3]]
    for day in ("yesterday", "9999-12-31", "2026-13-01"):
        assert listed(viewer, "usage", day=day) == []
    page = viewer.get(reverse("admin:tasks_app_usage_changelist")).content.decode()
    assert "&lt;b&gt;big.pdf" in page
    assert "<b>big" not in page
    assert reverse("admin:tasks_app_task_change", args=["t"]) in page
    assert viewer.get(reverse("admin:tasks_app_usage_change", args=[ids[0]])).status_code == 302


@pytest.mark.requirement("ZONE-19")
def test_the_command_finds_the_same(rows: list[Usage]) -> None:
    def found(*words: str) -> list[str]:
        return [line["correlation_id"] for line in printed("a2a", "usage", *words)]

    assert found("--correlation", "c3") == ["c3"]
    assert found("--channel", "C0", "--since", "2026-11-02", "--until", "2026-11-05T12:00") == ["c2"]
    assert found("--limit", "10") == ["c5", "c4", "c3", "c2", "c1", "c0"]
    (line,) = printed("a2a", "usage", "--correlation", "c3")
    assert (line["owner"], line["tenant"], line["skipped"]) == ("olga", rows[0].tenant.name, "<b>big.pdf")


@pytest.mark.requirement("ZONE-19")
def test_the_api_finds_the_same_within_the_reach_of_its_operator(rows: list[Usage]) -> None:
    other = Principal.objects.create(tenant=Tenant.objects.create(name="other"), name="boris")
    foreign = usage(other, 7, correlation_id="c3")
    robot = program(VIEWER, reach=NamedReach(tenants=[rows[0].tenant.name]))
    for query, numbers in (
        ({"correlation_id": "c3"}, [3]),
        ({"channel": "C0"}, [4, 2, 0]),
        ({"channel": "C1", "since": "2026-11-02T12:00:00Z", "until": "2026-11-06T12:00:00Z"}, [3, 1]),
    ):
        results = robot.get("usage/", **query).json()["results"]
        assert [row["id"] for row in results] == [rows[number].pk for number in numbers]
    assert robot.get(f"usage/{rows[3].pk}/").json()["skipped"] == "<b>big.pdf"
    assert robot.get(f"usage/{foreign.pk}/").status_code == 404
    assert foreign.pk in [row["id"] for row in program(VIEWER).get("usage/", correlation_id="c3").json()["results"]]


@pytest.mark.requirement("ZONE-19")
@pytest.mark.parametrize(
    ("column", "index"), [("correlation_id", "usage_by_correlation_id"), ("channel", "usage_by_channel_id")]
)
def test_an_index_gives_the_newest_rows_of_a_search(rows: list[Usage], column: str, index: str) -> None:
    selected = Usage.objects.filter(**{column: getattr(rows[3], column)}).order_by("-pk")
    dated = selected.filter(pk__gte=uuid7_at(START), pk__lt=uuid7_at(START + timedelta(days=9)))
    with connection.cursor() as cursor:
        if on_postgres():  # of a short table it reads the whole rather than an index
            cursor.execute("set local enable_seqscan = off")
            cursor.execute("set local enable_bitmapscan = off")
    for each in (selected, dated):
        plan = each[:51].explain()
        assert index in plan
        assert "Sort" not in plan.replace("Sort Key", "")
        assert "TEMP B-TREE" not in plan
