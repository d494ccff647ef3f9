"""Pages of exchanges: the request beside its answer."""

import json
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from msgspec.structs import replace

from a2a import errors
from a2a.choice import Row, by_method
from a2a.dialects import v1_0
from a2a.events import StatusChanged
from a2a.language import Cell
from a2a.languages import Languages
from a2a.states import TaskState
from tasks_app.admin import text
from tasks_app.exchanges import responses
from tasks_app.ids import uuid7
from tasks_app.models import Exchange, Principal
from tests.support.operators import exchange, status, task
from tests.transports.admin.pages import page

pytestmark = pytest.mark.django_db


def test_request_and_response_are_shown_beside_each_other(
    admin: Client, olga: Principal, answers: dict[str, str]
) -> None:
    row = exchange(olga, '{"jsonrpc":"2.0","id":7,"method":"SendMessage"}', task_id=uuid7(), first_seq=1, last_seq=3)
    answers[row.pk] = '{"jsonrpc":"2.0","id":7,"result":{}}'
    answer = admin.get(reverse("admin:tasks_app_exchange_change", args=[row.pk]))
    assert answer.context["request_text"] == '{\n  "jsonrpc": "2.0",\n  "id": 7,\n  "method": "SendMessage"\n}'
    assert answer.context["response"] == '{\n  "jsonrpc": "2.0",\n  "id": 7,\n  "result": {}\n}'
    facts = {fact.label: fact.value for fact in answer.context["facts"]}
    assert facts["RPC id"] == "7 (number)"
    assert facts["Request id"] == row.request_id
    assert facts["Duration"] == "12.3 ms"
    assert facts["Caller"] == "olga"
    assert facts["Task events"] == "1 … 3"
    assert reverse("admin:tasks_app_task_change", args=[row.task_id]) in answer.content.decode()


def test_a_half_without_an_answer_says_so(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    row = exchange(olga, "{}", outcome="", http_status=None, duration_us=None)
    answers[row.pk] = "must not be asked for"
    assert "No answer recorded" in page(admin, "exchange", row.pk)
    assert "must not be" not in page(admin, "exchange", row.pk)
    assert "no answer recorded" in admin.get(reverse("admin:tasks_app_exchange_changelist")).content.decode()


def test_refused_streamed_and_notified_calls_are_shown_as_such(
    admin: Client, olga: Principal, answers: dict[str, str]
) -> None:
    refused = exchange(
        None, outcome="refused", code=-38009, http_status=401, rpc_id=None, rpc_id_type="absent", method=""
    )
    assert "Refused: code -38009 UNAUTHENTICATED, HTTP 401" in page(admin, "exchange", refused.pk)
    assert "Streamed: 5 frames" in page(admin, "exchange", exchange(olga, outcome="stream", frames=5).pk)
    assert "A notification gets no answer" in page(admin, "exchange", exchange(olga, outcome="notified").pk)
    broken = exchange(olga, outcome="broken", code=-38013, http_status=200)
    assert "Broken off: code -38013" in page(admin, "exchange", broken.pk)
    left = page(admin, "exchange", exchange(olga, outcome="left", http_status=None).pk)
    assert "The caller disconnected before the answer; the task went on" in left
    assert "The caller had disconnected." in left


def test_the_members_of_a_batch_are_linked(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    one, two, stranger = (exchange(olga, request_id=name) for name in ("r-1", "r-1", "r-2"))
    shown = page(admin, "exchange", one.pk)
    assert reverse("admin:tasks_app_exchange_change", args=[two.pk]) in shown
    assert stranger.pk not in shown


def test_a_body_that_is_no_json_is_shown_as_it_is(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    row = exchange(olga, "POST me {not json")
    assert "POST me {not json" in page(admin, "exchange", row.pk)


def test_an_answer_that_cannot_be_derived_leaves_the_page_standing(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(row: Exchange) -> str:
        raise ValueError("the log begins with something else")

    monkeypatch.setattr(responses, "response_text", fail)
    assert "cannot be derived" in page(admin, "exchange", exchange(olga).pk)


def test_the_answer_is_derived_from_the_log(admin: Client, olga: Principal) -> None:
    request = '{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}'
    row = task(olga, StatusChanged(status=status(TaskState.COMPLETED, "all done")))
    call = exchange(olga, request, method="GetTask", task_id=row.pk, context_id=row.context_id, last_seq=2)
    assert "all done" in page(admin, "exchange", call.pk)


def test_json_is_indented_token_for_token() -> None:
    given = '{"n":12345678901234567890123,"f":1.00,"a":[],"o":{ },"s":"a,\\"{b","n":null}'
    shown = text.indent_json(given)
    assert shown.splitlines()[1] == '  "n": 12345678901234567890123,'
    assert shown.splitlines()[2] == '  "f": 1.00,'
    assert json.loads(shown) == json.loads(given)
    assert text.indent_json('{"a":1}\n{"b":2}') == '{\n  "a": 1\n}\n{\n  "b": 2\n}'
    assert text.indent_json('{"a":1}\nb') == '{"a":1}\nb'
    assert text.indent_json("7\n8") == "7\n8"
    assert text.indent_json("[" * 100_000) == "[" * 100_000
    assert len(text.indent_json("[" * 900 + "]" * 900, 1_000)) < 4_000


@pytest.mark.parametrize(
    ("microseconds", "shown"),
    [
        (None, ""),
        (0, "0 µs"),
        (812, "812 µs"),
        (12_345, "12.3 ms"),
        (999_900, "1 s"),
        (1_240_000, "1.24 s"),
        (59_999_999, "60 s"),
        (185_000_000, "3 min 5 s"),
    ],
)
def test_durations_are_shown_as_people_say_them(microseconds: int | None, shown: str) -> None:
    assert text.format_duration(microseconds) == shown


def test_the_envelope_of_a_call_is_shown(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    row = exchange(olga, "{}", envelope="bare")
    facts = admin.get(reverse("admin:tasks_app_exchange_change", args=[row.pk])).context["facts"]
    assert {fact.label: fact.value for fact in facts}["Envelope"] == "bare"


def test_the_reason_of_a_code_is_that_of_the_calls_language(
    admin: Client, olga: Principal, answers: dict[str, str], speak: Callable[[Languages], None]
) -> None:
    """Languages that are not A2A have numbers of their own, which may be those of other errors in A2A."""
    column = {errors.TaskNotFound: Cell(-32002), errors.UnknownAgent: Cell(7)}
    other = replace(v1_0.DIALECT, name="other", column=column)
    speak(Languages(rows=(Row(languages=(other,), choose=by_method, spelling=re.compile("x")),)))

    def verdict(code: int, dialect: str) -> str:
        row = exchange(olga, "{}", outcome="error", code=code, dialect=dialect, http_status=None)
        return str(admin.get(reverse("admin:tasks_app_exchange_change", args=[row.pk])).context["verdict"])

    assert verdict(7, "other") == f"Error: code 7 {errors.UnknownAgent.reason}"
    assert verdict(-32002, "other") == f"Error: code -32002 {errors.TaskNotFound.reason}"
    assert verdict(-32002, "a2a-1.0") == f"Error: code -32002 {errors.TaskNotCancelable.reason}"
    assert verdict(7, "") == f"Error: code 7 {errors.UnknownAgent.reason}"
    assert verdict(12345, "a language that is gone") == "Error: code 12345"
