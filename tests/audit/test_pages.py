"""The audit over the operators' API and in the admin: found by index, as lines, and only for those who may see it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app import clock
from tasks_app.ids import uuid7_at
from tasks_app.models import ApiKey, AuditEntry, Principal, RefusedCalls
from tasks_app.operators.roles import ADMINISTRATOR, AUDITOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operators.people import program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
START = datetime(2026, 3, 1, tzinfo=UTC)


def entry(person: Person, number: int, task: str = "", peer: str = "203.0.113.7") -> AuditEntry:
    at = START + timedelta(hours=number)
    caller = person.caller
    return AuditEntry.objects.create(
        id=uuid7_at(at),
        created_at=at,
        caller_id=caller.owner_id,
        caller=caller.name,
        tenant_id=caller.tenant_id,
        tenant=caller.tenant,
        credential=caller.credential,
        peer=peer,
        door="http",
        method="SendMessage",
        task_id=task or None,
        outcome="result",
        exchange_id=uuid7_at(at),
    )


@pytest.fixture
def rows(owner: Person, colleague: Person, stranger: Person) -> list[AuditEntry]:
    people = (owner, colleague, stranger)
    rows = [entry(person, n, task=f"task-{n}", peer=f"203.0.113.{n}") for n, person in enumerate(people)]
    RefusedCalls.objects.create(
        hour=START,
        caller_id=1,
        caller="owner",
        tenant_id=owner.caller.tenant_id,
        tenant="home",
        credential="key:1",
        reason="RATE_LIMITED",
        count=7,
        last_at=START,
    )
    return rows


def found(robot: Any, **query: Any) -> list[str]:
    return [row["id"] for row in robot.get("audit/", **query).json()["results"]]


def test_the_api_finds_entries_by_task_caller_key_and_address(rows: list[AuditEntry], owner: Person) -> None:
    robot = program(AUDITOR)
    assert found(robot) == [row.id for row in reversed(rows)]
    for query in (
        {"task_id": "task-0"},
        {"caller_id": owner.caller.owner_id},
        {"credential": owner.caller.credential},
        {"peer": "203.0.113.0"},
    ):
        assert found(robot, **query) == [rows[0].id]
    assert robot.get("audit/", nothing="x").status_code == 400
    assert robot.get(f"audit/{rows[0].id}/").json()["tenant"] == "home"
    assert robot.get("refused-calls/").json()["results"][0]["count"] == 7


def test_a_caller_may_be_given_with_its_tenant_as_the_export_takes_it(rows: list[AuditEntry]) -> None:
    robot, since = program(AUDITOR), f"{START:%Y-%m-%dT%H:%M:%SZ}"
    for name in ("owner", "home/owner"):
        assert found(robot, since=since, caller=name) == [rows[0].id]
        assert len(robot.get("refused-calls/", caller=name).json()["results"]) == 1
    assert found(robot, since=since, caller="abroad/owner") == []


def test_entries_come_as_lines_with_a_link_to_the_next_page(rows: list[AuditEntry]) -> None:
    robot = program(AUDITOR)
    headers = robot.headers | {"Accept": "application/x-ndjson"}
    answer = Client().get("/api/v1/audit/?limit=2", headers=headers)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.content.splitlines()]
    assert [line["id"] for line in lines] == [rows[2].id, rows[1].id]
    address = answer.headers["Link"].removeprefix("<").partition(">")[0]
    (last,) = Client().get(address, headers=headers).content.splitlines()
    assert json.loads(last)["id"] == rows[0].id


def test_only_those_who_may_see_the_audit(rows: list[AuditEntry], owner: Person) -> None:
    assert program(VIEWER).get("audit/").status_code == 403
    assert program(AUDITOR).post("audit/").status_code == 405
    home = program(AUDITOR, reach=NamedReach(tenants=("home",)))
    assert found(home) == [rows[1].id, rows[0].id]
    assert home.get(f"audit/{rows[2].id}/").status_code == 404
    abroad = program(AUDITOR, reach=NamedReach(tenants=("abroad",)))
    assert abroad.get("refused-calls/").json()["results"] == []


@pytest.mark.parametrize("text", ["task-0", "203.0.113.0", "home/owner", "CREDENTIAL", "ID"])
def test_the_admin_finds_entries(rows: list[AuditEntry], admin_client: Client, text: str, admin_user: User) -> None:
    text = {"CREDENTIAL": rows[0].credential, "ID": rows[0].id}.get(text, text)
    page = admin_client.get("/admin/tasks_app/auditentry/", {"q": text}).content.decode()
    assert ("203.0.113.0<" in page, "203.0.113.1<" in page) == (True, False)


def test_the_admin_shows_an_entry_and_changes_none(rows: list[AuditEntry], admin_client: Client) -> None:
    path = f"/admin/tasks_app/auditentry/{rows[0].id}/change/"
    page = admin_client.get(path).content.decode()
    assert all(text in page for text in ("home/owner", "203.0.113.0", "task-0", "SendMessage"))
    assert admin_client.post(path).status_code == 403
    assert admin_client.post(path.replace("change", "delete")).status_code == 403
    listed = admin_client.get("/admin/tasks_app/refusedcalls/").content.decode()
    assert "RATE_LIMITED" in listed
    for query in ({"peer": "203.0.113.1"}, {"method": "SendMessage"}, {"created": "week"}, {"q": "\0"}):
        assert admin_client.get("/admin/tasks_app/auditentry/", query).status_code == 200


def test_the_admin_rotates_a_key_and_shows_it_once(owner: Person, admin_client: Client, olga: Principal) -> None:
    form = {"action": "rotate", "_selected_action": [owner.caller.key_id]}
    asked = admin_client.post("/admin/tasks_app/apikey/", form)
    assert "Rotate this key?" in asked.content.decode()
    form |= {"post": "yes", "overlap_hours": "2"}
    page = admin_client.post("/admin/tasks_app/apikey/", form)
    assert "no-store" in page.headers["Cache-Control"]
    text = page.content.decode()
    assert text.count("tdk_") == 2  # the old key's prefix and the new key
    assert "tdk_" in text
    again = admin_client.post("/admin/tasks_app/apikey/", form, follow=True).content.decode()
    assert f"Key {owner.caller.key_id} is being replaced by key" in again
    assert program(ADMINISTRATOR).get("keys/").json()["results"][0]["networks"] == ""
    old = ApiKey.objects.get(pk=owner.caller.key_id)
    assert old.expires_at is not None
    assert timedelta(hours=1, minutes=59) < old.expires_at - clock.now() <= timedelta(hours=2)


@pytest.mark.parametrize("hours", ["", "x", "-1", "2161", "nan"])
def test_the_admin_asks_again_for_an_overlap_that_no_key_can_have(
    hours: str, owner: Person, admin_client: Client, olga: Principal
) -> None:
    form = {"action": "rotate", "_selected_action": [owner.caller.key_id], "post": "yes", "overlap_hours": hours}
    page = admin_client.post("/admin/tasks_app/apikey/", form).content.decode()
    assert "Rotate this key?" in page
    assert 'class="errorlist"' in page
    assert ApiKey.objects.get(pk=owner.caller.key_id).expires_at is None
