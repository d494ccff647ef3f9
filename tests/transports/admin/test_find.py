"""Rows that an operator finds: by an id, by a filter, in a list."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a.dialects.errors_1_0 import REST_STATUSES
from a2a.events import StatusChanged
from a2a.matrix import MATRIX
from a2a.states import TaskState
from tasks_app.admin.exchanges import STATUSES
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Exchange, Principal
from tests.support.operators import exchange, status, task
from tests.transports.admin.pages import listed, page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("given", ["{}", "  {}\n", '"{}"', " '{}' ", "`{}`"])
@pytest.mark.parametrize("field", ["id", "request_id", "rpc_id", "task_id"])
@pytest.mark.requirement("ZONE-12")
def test_an_exchange_is_found_by_each_of_its_ids(admin: Client, olga: Principal, field: str, given: str) -> None:
    wanted = exchange(olga, rpc_id="req/42", rpc_id_type="string", task_id=uuid7())
    exchange(olga, rpc_id="req/421", task_id=uuid7())
    assert listed(admin, "exchange", q=given.format(getattr(wanted, field))) == [wanted.pk]


def test_an_rpc_id_that_has_quotes_of_its_own_is_found(admin: Client, olga: Principal) -> None:
    wanted = exchange(olga, rpc_id='"7"', rpc_id_type="string")
    bare = exchange(olga, rpc_id="7")
    assert set(listed(admin, "exchange", q='"7"')) == {wanted.pk, bare.pk}
    assert listed(admin, "exchange", q="7") == [bare.pk]


@pytest.mark.parametrize("nothing", ["req", "%", "_", "7%", "''", "\ud800", "no such id"])
def test_a_part_of_an_id_finds_nothing(admin: Client, olga: Principal, nothing: str) -> None:
    exchange(olga, rpc_id="req-7")
    assert listed(admin, "exchange", q=nothing.encode(errors="replace").decode()) == []


def test_all_candidates_are_listed_with_caller_and_time(admin: Client, olga: Principal) -> None:
    other = Principal.objects.create(tenant=olga.tenant, name="boris")
    rows = [exchange(caller, rpc_id="1") for caller in (olga, other, None)]
    answer = admin.get(reverse("admin:tasks_app_exchange_changelist"), {"q": "1"})
    shown = answer.content.decode()
    assert [row.pk for row in answer.context["cl"].result_list] == [
        row.pk for row in sorted(rows, key=lambda row: row.pk)
    ][::-1]
    assert "olga" in shown
    assert "boris" in shown
    assert "2026-11-21 02:38:27.123" in shown
    assert "12.3 ms" in shown


def test_a_task_is_found_by_its_id_and_by_its_context(admin: Client, olga: Principal) -> None:
    one, two = task(olga, context_id="chat 1"), task(olga, context_id="chat 1")
    task(olga, context_id="chat 11")
    assert listed(admin, "task", q=f' "{one.pk}" ') == [one.pk]
    assert set(listed(admin, "task", q="chat 1")) == {one.pk, two.pk}
    assert listed(admin, "task", q="chat") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"outcome": "error"}, "refused"),
        ({"outcome": "none"}, "silent"),
        ({"http_status": "403"}, "refused"),
        ({"dialect": "acp"}, "silent"),
        ({"method": "tasks.create"}, "silent"),
        ({"door": "rest"}, "refused"),
        ({"caller__name": "boris"}, "refused"),
        ({"peer": "203.0.113.7"}, "refused"),
        ({"created": "day"}, "silent"),
    ],
)
def test_exchanges_are_filtered(admin: Client, olga: Principal, query: dict[str, str], expected: str) -> None:
    other = Principal.objects.create(tenant=olga.tenant, name="boris")
    old, older = (uuid7_at(timezone.now() - timedelta(days=days)) for days in (2, 3))
    exchange(olga, id=older)
    rows = {
        "refused": exchange(
            other, id=old, outcome="error", http_status=403, code=-38010, door="rest", peer="203.0.113.7"
        ),
        "silent": exchange(olga, outcome="", http_status=None, dialect="acp", method="tasks.create"),
    }
    assert listed(admin, "exchange", **query) == [rows[expected].pk]


def test_every_outcome_and_status_that_a_call_may_have_can_be_chosen(admin: Client, olga: Principal) -> None:
    exchange(olga)
    shown = admin.get(reverse("admin:tasks_app_exchange_changelist")).content.decode()
    assert set(re.findall(r"\?outcome=([a-z]+)", shown)) == {*Exchange.OUTCOMES, "none"}
    assert "?caller__name=acme%2Folga" in shown
    of_http = {200, 204, 405, 408, 413, 415}
    of_rest = {status for status, _ in REST_STATUSES.values()}
    of_envelopes = {cell.status for column in MATRIX.values() for cell in column.values()}
    assert set(STATUSES) == of_http | of_rest | of_envelopes


def test_the_page_of_an_exchange_leads_to_the_calls_from_its_address(admin: Client, olga: Principal) -> None:
    exchange(olga, peer="203.0.113.7")
    row = exchange(olga, peer="2001:db8::7")
    (found,) = re.findall(r'href="([^"]+peer=[^"]+)"', page(admin, "exchange", row.pk))
    shown = admin.get(found).content.decode()
    assert {row.pk} == set(re.findall(r'href="/admin/tasks_app/exchange/([0-9a-f-]{36})/', shown))


def test_the_list_of_exchanges_says_by_which_door_they_came(admin: Client, olga: Principal) -> None:
    exchange(olga, door="rest")
    exchange(olga, door="http")
    response = admin.get(reverse("admin:tasks_app_exchange_changelist"))
    shown = response.content.decode()
    assert sorted(re.findall('class="field-door">([a-z]+)<', shown)) == ["http", "rest"]
    assert {"?door=http", "?door=rest"} <= set(re.findall(r'href="(\?door=[a-z]+)"', shown))


@pytest.mark.parametrize("model", ["exchange", "task", "webhook", "delivery", "apikey", "principal", "process"])
@pytest.mark.parametrize("query", ["id__startswith", "task__snapshot__contains", "url__contains", "digest__startswith"])
def test_a_viewer_cannot_choose_rows_by_what_no_filter_offers(viewer: Client, model: str, query: str) -> None:
    address = reverse(f"admin:tasks_app_{model}_changelist")
    assert viewer.get(address).status_code == 200
    assert viewer.get(address, {query: "a"}).status_code == 400


def test_an_odd_filter_value_is_no_fault(admin: Client, olga: Principal) -> None:
    row = exchange(olga)
    assert listed(admin, "exchange", http_status=str(row.http_status)) == [row.pk]
    assert listed(admin, "exchange", http_status="x' or 1=1") == []
    assert listed(admin, "exchange", http_status="²00") == []
    assert listed(admin, "exchange", outcome="<b>") == []
    assert listed(admin, "task", created="ever") == []


def test_tasks_are_filtered_by_state_agent_and_age(admin: Client, olga: Principal) -> None:
    old = task(olga, id=uuid7_at(timezone.now() - timedelta(days=3)), agent="story")
    new = task(olga, StatusChanged(status=status(TaskState.WORKING)))
    assert listed(admin, "task", state="working") == [new.pk]
    assert listed(admin, "task", agent="story") == [old.pk]
    assert listed(admin, "task", created="day") == [new.pk]
    assert listed(admin, "task", created="week") == [new.pk, old.pk]


def test_no_list_can_be_sorted_by_a_column_without_an_index(admin: Client, olga: Principal) -> None:
    first, second = exchange(olga, method="B"), exchange(olga, method="A")
    assert listed(admin, "exchange", o="2") == sorted([first.pk, second.pk], reverse=True)
