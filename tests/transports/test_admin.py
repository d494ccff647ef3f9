"""The operator's door: what it shows, to whom, and that it changes nothing but through operations."""

import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a.dialects.errors_1_0 import REST_STATUSES
from a2a.errors import TaskNotCancelable, TaskNotFound
from a2a.events import ArtifactAdded, MessageAdded, StatusChanged
from a2a.states import TaskState
from a2a.types import Artifact, Part
from tasks_app import operations
from tasks_app.admin import text, timeline
from tasks_app.admin.exchanges import STATUSES
from tasks_app.callers import access
from tasks_app.callers.paths import is_lean
from tasks_app.exchanges import responses
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import ApiKey, Exchange, Principal, Process, Run, Tenant
from tasks_app.models import Event as Row
from tasks_app.operators.audit import Operator
from tests.transports.operators import NOW, act, exchange, listed, page, said, status, task, told

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert("x")</script>\u202e<img src=x onerror=alert(1)>'


@pytest.fixture
def owner() -> Principal:
    home, _ = Tenant.objects.get_or_create(name="acme")
    return Principal.objects.get_or_create(tenant=home, name="olga")[0]


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    return client


@pytest.fixture
def viewer() -> Client:
    """May look at everything and act on nothing."""
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tasks_app", codename__startswith="view_")
    )
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Responses by exchange id, in place of those that are stored or derived."""
    known: dict[str, str] = {}
    monkeypatch.setattr(responses, "response_text", lambda row: known.get(row.pk, ""))
    return known


@pytest.fixture
def canceled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Whom the operation was asked to cancel, and by which operator."""
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(operations, "cancel_for_operator", lambda task_id, by: calls.append((task_id, by.name)))
    return calls


# --------------------------------------------------------------------- find


@pytest.mark.parametrize("given", ["{}", "  {}\n", '"{}"', " '{}' ", "`{}`"])
@pytest.mark.parametrize("field", ["id", "request_id", "rpc_id", "task_id"])
def test_an_exchange_is_found_by_each_of_its_ids(admin: Client, owner: Principal, field: str, given: str) -> None:
    wanted = exchange(owner, rpc_id="req/42", rpc_id_type="string", task_id=uuid7())
    exchange(owner, rpc_id="req/421", task_id=uuid7())
    assert listed(admin, "exchange", q=given.format(getattr(wanted, field))) == [wanted.pk]


def test_an_rpc_id_that_has_quotes_of_its_own_is_found(admin: Client, owner: Principal) -> None:
    wanted = exchange(owner, rpc_id='"7"', rpc_id_type="string")
    bare = exchange(owner, rpc_id="7")
    assert set(listed(admin, "exchange", q='"7"')) == {wanted.pk, bare.pk}
    assert listed(admin, "exchange", q="7") == [bare.pk]


@pytest.mark.parametrize("nothing", ["req", "%", "_", "7%", "''", "\ud800", "no such id"])
def test_a_part_of_an_id_finds_nothing(admin: Client, owner: Principal, nothing: str) -> None:
    exchange(owner, rpc_id="req-7")
    assert listed(admin, "exchange", q=nothing.encode(errors="replace").decode()) == []


def test_all_candidates_are_listed_with_caller_and_time(admin: Client, owner: Principal) -> None:
    other = Principal.objects.create(tenant=owner.tenant, name="boris")
    rows = [exchange(caller, rpc_id="1") for caller in (owner, other, None)]
    answer = admin.get(reverse("admin:tasks_app_exchange_changelist"), {"q": "1"})
    shown = answer.content.decode()
    assert [row.pk for row in answer.context["cl"].result_list] == [
        row.pk for row in sorted(rows, key=lambda row: row.pk)
    ][::-1]
    assert "olga" in shown
    assert "boris" in shown
    assert "2026-11-21 02:38:27.123" in shown
    assert "12.3 ms" in shown


def test_a_task_is_found_by_its_id_and_by_its_context(admin: Client, owner: Principal) -> None:
    one, two = task(owner, context_id="chat 1"), task(owner, context_id="chat 1")
    task(owner, context_id="chat 11")
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
def test_exchanges_are_filtered(admin: Client, owner: Principal, query: dict[str, str], expected: str) -> None:
    other = Principal.objects.create(tenant=owner.tenant, name="boris")
    old, older = (uuid7_at(timezone.now() - timedelta(days=days)) for days in (2, 3))
    exchange(owner, id=older)
    rows = {
        "refused": exchange(
            other, id=old, outcome="error", http_status=403, code=-38010, door="rest", peer="203.0.113.7"
        ),
        "silent": exchange(owner, outcome="", http_status=None, dialect="acp", method="tasks.create"),
    }
    assert listed(admin, "exchange", **query) == [rows[expected].pk]


def test_every_outcome_and_status_that_a_call_may_have_can_be_chosen(admin: Client, owner: Principal) -> None:
    exchange(owner)
    shown = admin.get(reverse("admin:tasks_app_exchange_changelist")).content.decode()
    assert set(re.findall(r"\?outcome=([a-z]+)", shown)) == {*Exchange.OUTCOMES, "none"}
    assert "?caller__name=olga" in shown
    of_http = {200, 204, 405, 408, 413, 415}
    assert set(STATUSES) == of_http | {status for status, _ in REST_STATUSES.values()}


def test_the_page_of_an_exchange_leads_to_the_calls_from_its_address(admin: Client, owner: Principal) -> None:
    exchange(owner, peer="203.0.113.7")
    row = exchange(owner, peer="2001:db8::7")
    (found,) = re.findall(r'href="([^"]+peer=[^"]+)"', page(admin, "exchange", row.pk))
    shown = admin.get(found).content.decode()
    assert {row.pk} == set(re.findall(r'href="/admin/tasks_app/exchange/([0-9a-f-]{36})/', shown))


def test_the_list_of_exchanges_says_by_which_door_they_came(admin: Client, owner: Principal) -> None:
    exchange(owner, door="rest")
    exchange(owner, door="http")
    response = admin.get(reverse("admin:tasks_app_exchange_changelist"))
    shown = response.content.decode()
    assert sorted(re.findall('class="field-door">([a-z]+)<', shown)) == ["http", "rest"]
    assert {"?door=http", "?door=rest"} <= set(re.findall(r'href="(\?door=[a-z]+)"', shown))


@pytest.mark.parametrize("model", ["exchange", "task", "pushconfig", "delivery", "apikey", "principal", "process"])
@pytest.mark.parametrize("query", ["id__startswith", "task__snapshot__contains", "url__contains", "digest__startswith"])
def test_a_viewer_cannot_choose_rows_by_what_no_filter_offers(viewer: Client, model: str, query: str) -> None:
    address = reverse(f"admin:tasks_app_{model}_changelist")
    assert viewer.get(address).status_code == 200
    assert viewer.get(address, {query: "a"}).status_code == 400


def test_an_odd_filter_value_is_no_fault(admin: Client, owner: Principal) -> None:
    row = exchange(owner)
    assert listed(admin, "exchange", http_status=str(row.http_status)) == [row.pk]
    assert listed(admin, "exchange", http_status="x' or 1=1") == []
    assert listed(admin, "exchange", http_status="²00") == []
    assert listed(admin, "exchange", outcome="<b>") == []
    assert listed(admin, "task", created="ever") == []


def test_tasks_are_filtered_by_state_agent_and_age(admin: Client, owner: Principal) -> None:
    old = task(owner, id=uuid7_at(timezone.now() - timedelta(days=3)), agent="story")
    new = task(owner, StatusChanged(status=status(TaskState.WORKING)))
    assert listed(admin, "task", state="working") == [new.pk]
    assert listed(admin, "task", agent="story") == [old.pk]
    assert listed(admin, "task", created="day") == [new.pk]
    assert listed(admin, "task", created="week") == [new.pk, old.pk]


def test_no_list_can_be_sorted_by_a_column_without_an_index(admin: Client, owner: Principal) -> None:
    first, second = exchange(owner, method="B"), exchange(owner, method="A")
    assert listed(admin, "exchange", o="2") == sorted([first.pk, second.pk], reverse=True)


# ---------------------------------------------------------------- exchanges


def test_request_and_response_are_shown_beside_each_other(
    admin: Client, owner: Principal, answers: dict[str, str]
) -> None:
    row = exchange(owner, '{"jsonrpc":"2.0","id":7,"method":"SendMessage"}', task_id=uuid7(), first_seq=1, last_seq=3)
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


def test_a_half_without_an_answer_says_so(admin: Client, owner: Principal, answers: dict[str, str]) -> None:
    row = exchange(owner, "{}", outcome="", http_status=None, duration_us=None)
    answers[row.pk] = "must not be asked for"
    assert "No answer recorded" in page(admin, "exchange", row.pk)
    assert "must not be" not in page(admin, "exchange", row.pk)
    assert "no answer recorded" in admin.get(reverse("admin:tasks_app_exchange_changelist")).content.decode()


def test_refused_streamed_and_notified_calls_are_shown_as_such(
    admin: Client, owner: Principal, answers: dict[str, str]
) -> None:
    refused = exchange(
        None, outcome="refused", code=-38009, http_status=401, rpc_id=None, rpc_id_type="absent", method=""
    )
    assert "Refused: code -38009 UNAUTHENTICATED, HTTP 401" in page(admin, "exchange", refused.pk)
    assert "Streamed: 5 frames" in page(admin, "exchange", exchange(owner, outcome="stream", frames=5).pk)
    assert "A notification gets no answer" in page(admin, "exchange", exchange(owner, outcome="notified").pk)
    broken = exchange(owner, outcome="broken", code=-38013, http_status=200)
    assert "Broken off: code -38013" in page(admin, "exchange", broken.pk)
    left = page(admin, "exchange", exchange(owner, outcome="left", http_status=None).pk)
    assert "The caller disconnected before the answer; the task went on" in left
    assert "The caller had disconnected." in left


def test_the_members_of_a_batch_are_linked(admin: Client, owner: Principal, answers: dict[str, str]) -> None:
    one, two, stranger = (exchange(owner, request_id=name) for name in ("r-1", "r-1", "r-2"))
    shown = page(admin, "exchange", one.pk)
    assert reverse("admin:tasks_app_exchange_change", args=[two.pk]) in shown
    assert stranger.pk not in shown


def test_a_body_that_is_no_json_is_shown_as_it_is(admin: Client, owner: Principal, answers: dict[str, str]) -> None:
    row = exchange(owner, "POST me {not json")
    assert "POST me {not json" in page(admin, "exchange", row.pk)


def test_an_answer_that_cannot_be_derived_leaves_the_page_standing(
    admin: Client, owner: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(row: Exchange) -> str:
        raise ValueError("the log begins with something else")

    monkeypatch.setattr(responses, "response_text", fail)
    assert "cannot be derived" in page(admin, "exchange", exchange(owner).pk)


def test_the_answer_is_derived_from_the_log(admin: Client, owner: Principal) -> None:
    request = '{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}'
    row = task(owner, StatusChanged(status=status(TaskState.COMPLETED, "all done")))
    call = exchange(owner, request, method="GetTask", task_id=row.pk, context_id=row.context_id, last_seq=2)
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


# -------------------------------------------------------------------- tasks


def test_a_task_shows_its_log_its_messages_artifacts_runs_and_calls(admin: Client, owner: Principal) -> None:
    call = exchange(owner)
    row = task(
        owner,
        StatusChanged(status=status(TaskState.WORKING, "counting")),
        ArtifactAdded(artifact=Artifact(artifact_id="a1", name="numbers", parts=(Part(text="one "),))),
        ArtifactAdded(artifact=Artifact(artifact_id="a1", parts=(Part(text="two"),)), append=True, last_chunk=True),
        ArtifactAdded(
            artifact=Artifact(
                artifact_id="a2",
                parts=(
                    Part(data={"three": 3}),
                    Part(raw=b"\0" * 1500, filename="three.bin", media_type="application/octet-stream"),
                    Part(url="javascript:alert(1)"),
                    Part(url="taskdesk-file:20261121-" + "0" * 32 + "/x.pdf", filename="<b>x.pdf"),
                    Part(url="taskdesk-file:nonsense"),
                ),
            )
        ),
        StatusChanged(status=status(TaskState.FAILED, "lost count")),
        exchange_id=call.pk,
    )
    Exchange.objects.filter(pk=call.pk).update(task_id=row.pk)
    Run.objects.create(
        task=row, number=1, worker="w1", ended_at=NOW, outcome="failed", reference="ref-9", traceback="Traceback: boom"
    )
    shown = page(admin, "task", row.pk)
    for expected in (
        "created → submitted: “count to three”",
        "→ working: “counting”",
        "artifact numbers written: “one”",
        "artifact a1 continued: “two”, last chunk",
        "→ failed: “lost count”",
        "one two",
        "&quot;three&quot;: 3",
        "three.bin, application/octet-stream",
        "1.5 kB",
        "javascript:alert(1)",
        "ref-9",
        "Traceback: boom",
        "count to three",
        reverse("admin:tasks_app_exchange_change", args=[call.pk]),
    ):
        assert expected in shown, expected
    assert 'href="javascript' not in shown
    assert 'href="/files/20261121-' in shown
    assert "<b>x.pdf" not in shown
    assert 'href="taskdesk' not in shown


def test_a_follow_up_message_is_in_the_timeline_and_in_the_history(admin: Client, owner: Principal) -> None:
    row = task(
        owner,
        StatusChanged(status=status(TaskState.INPUT_REQUIRED, "how far?")),
        MessageAdded(message=said("to five"), status=status(TaskState.SUBMITTED)),
    )
    shown = page(admin, "task", row.pk)
    assert "user message → submitted: “to five”" in shown
    assert shown.count("how far?") >= 2


def test_a_long_log_shows_its_newest_events(admin: Client, owner: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "NEWEST", 3)
    row = task(owner, *(StatusChanged(status=status(TaskState.WORKING, f"step {n}")) for n in range(5)))
    answer = admin.get(reverse("admin:tasks_app_task_change", args=[row.pk]))
    assert [event["seq"] for event in answer.context["events"]] == [4, 5, 6]
    assert "3 older ones are not shown" in answer.content.decode()


def test_a_task_whose_log_is_broken_still_has_a_page(admin: Client, owner: Principal) -> None:
    row = task(owner, StatusChanged(status=status(TaskState.WORKING)), status="not json")
    Row.objects.filter(task_id=row.pk).update(payload='{"odd":1}')
    assert "cannot be shown" in page(admin, "task", row.pk)


# ------------------------------------------------------------------ hostile


def test_hostile_content_is_escaped_everywhere(admin: Client, owner: Principal, answers: dict[str, str]) -> None:
    call = exchange(owner, orjson.dumps({"x": HOSTILE}).decode(), rpc_id=HOSTILE, method=HOSTILE, request_id=HOSTILE)
    answers[call.pk] = HOSTILE
    row = task(
        owner,
        ArtifactAdded(
            artifact=Artifact(artifact_id=HOSTILE, name=HOSTILE, parts=(Part(text=HOSTILE), Part(url=HOSTILE)))
        ),
        StatusChanged(status=status(TaskState.FAILED, HOSTILE)),
        words=HOSTILE,
        context_id=HOSTILE,
        agent=HOSTILE,
    )
    Exchange.objects.filter(pk=call.pk).update(task_id=row.pk)
    Run.objects.create(task=row, number=1, worker=HOSTILE, ended_at=NOW, outcome="failed", traceback=HOSTILE)
    Principal.objects.filter(pk=owner.pk).update(name=HOSTILE[:60])
    lists = [reverse(f"admin:tasks_app_{model}_changelist") for model in ("exchange", "task")]
    shown = [page(admin, "exchange", call.pk), page(admin, "task", row.pk)]
    shown += [admin.get(address, query).content.decode() for address in lists for query in ({}, {"q": HOSTILE})]
    shown.append(act(admin, "task", "cancel_selected", row.pk, confirmed=False).content.decode())
    for content in shown:
        assert "<script>alert" not in content
        assert "<img src=x" not in content
        # What was searched for stands in the box as it was typed; all else is made visible.
        assert "\u202e" not in content.replace(f'value="{escaped(HOSTILE)}"', "")


def escaped(value: str) -> str:
    return value.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def test_hidden_characters_are_written_out() -> None:
    assert (
        text.reveal("a\0b\x1b[31m\u202ec\u2066d\ufeffe\r\nf\tg") == "a\\u0000b\\u001b[31m\\u202ec\\u2066d\\ufeffe\nf\tg"
    )
    assert text.reveal("שלום नमस्ते 👩‍👧") == "שלום नमस्ते 👩‍👧"


def test_huge_bodies_are_cut_with_a_line_saying_so(admin: Client, owner: Principal, answers: dict[str, str]) -> None:
    row = exchange(owner, "x" * 900_000)
    answers[row.pk] = orjson.dumps([["y"]] * 200_000).decode()
    answer = admin.get(reverse("admin:tasks_app_exchange_change", args=[row.pk]))
    assert len(answer.context["request_text"]) == len(answer.context["response"]) == text.PANE
    assert answer.content.decode().count("Only the first 200 kB are shown") == 2
    huge = task(
        owner,
        ArtifactAdded(artifact=Artifact(artifact_id="a", parts=(Part(text="z" * 900_000),))),
        words="\0" * 900_000,
    )
    shown = page(admin, "task", huge.pk)
    assert len(shown) < 700_000
    assert "Only the first 200 kB" in shown
    assert "Only the newest 200 kB" in shown


def test_pages_hold_no_inline_script_and_no_inline_style(
    admin: Client, owner: Principal, answers: dict[str, str]
) -> None:
    row, call = task(owner), exchange(owner)
    for shown in (
        page(admin, "task", row.pk),
        page(admin, "exchange", call.pk),
        admin.get(reverse("admin:tasks_app_task_changelist")).content.decode(),
        act(admin, "task", "cancel_selected", row.pk, confirmed=False).content.decode(),
    ):
        assert "<style" not in shown
        assert " style=" not in shown
        assert " onclick=" not in shown
        assert shown.count("<script") == shown.count("<script src=") + shown.count("<script\n") + shown.count(
            "<script id="
        )
        assert "taskdesk/admin.css" in shown


# --------------------------------------------------------------- permission


@pytest.mark.parametrize("model", ["exchange", "task", "tenant", "principal", "apikey"])
def test_nothing_is_added_changed_or_deleted_by_a_form(admin: Client, owner: Principal, model: str) -> None:
    access.new_key("olga", tenant="acme")
    rows = {
        "exchange": exchange(owner).pk,
        "task": task(owner).pk,
        "tenant": owner.tenant_id,
        "principal": owner.pk,
        "apikey": ApiKey.objects.get().pk,
    }
    pk = rows[model]
    assert admin.get(reverse(f"admin:tasks_app_{model}_add")).status_code == 403
    assert admin.post(reverse(f"admin:tasks_app_{model}_change", args=[pk]), {"name": "x"}).status_code == 403
    assert admin.get(reverse(f"admin:tasks_app_{model}_delete", args=[pk])).status_code == 403
    assert admin.post(reverse(f"admin:tasks_app_{model}_delete", args=[pk]), {"post": "yes"}).status_code == 403
    assert admin.get(reverse(f"admin:tasks_app_{model}_change", args=[pk])).status_code == 200


def test_events_and_runs_have_no_pages_of_their_own(admin: Client) -> None:
    for model in ("event", "run", "exchangebody"):
        assert admin.get(f"/admin/tasks_app/{model}/").status_code == 404


def test_a_viewer_sees_no_buttons_and_is_refused(
    viewer: Client, owner: Principal, canceled: list[tuple[str, str]]
) -> None:
    row = task(owner)
    access.new_key("olga", tenant="acme")
    assert "td-stop" not in page(viewer, "task", row.pk)
    assert "cancel_selected" not in viewer.get(reverse("admin:tasks_app_task_changelist")).content.decode()
    assert viewer.post(reverse("admin:tasks_app_task_cancel", args=[row.pk])).status_code == 403
    assert act(viewer, "task", "cancel_selected", row.pk).status_code == 403
    assert act(viewer, "apikey", "revoke", str(ApiKey.objects.get().pk)).status_code == 403
    assert canceled == []
    assert ApiKey.objects.get().revoked_at is None


def test_who_may_view_tasks_only_sees_no_exchanges(owner: Principal) -> None:
    user = User.objects.create_user("tom", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_task"))
    client = Client()
    client.force_login(user)
    call = exchange(owner)
    row = task(owner, exchange_id=call.pk)
    assert call.pk not in page(client, "task", row.pk)
    assert client.get(reverse("admin:tasks_app_exchange_change", args=[call.pk])).status_code == 403
    assert client.get(reverse("admin:tasks_app_exchange_changelist")).status_code == 403


def test_who_is_not_logged_in_is_sent_to_log_in(client: Client, owner: Principal) -> None:
    row = task(owner)
    for address in (
        reverse("admin:tasks_app_task_change", args=[row.pk]),
        reverse("admin:tasks_app_exchange_changelist"),
    ):
        assert client.get(address).status_code == 302
    assert client.post(reverse("admin:tasks_app_task_cancel", args=[row.pk])).status_code == 302


def test_an_unknown_id_leads_back_to_the_list(admin: Client) -> None:
    for pk in ("nobody", "%00", "<b>", "a_2Fb"):
        answer = admin.get(f"/admin/tasks_app/task/{pk}/change/", follow=True)
        assert answer.status_code == 200
        assert "There is no task" in told(answer)[0]


# ------------------------------------------------------------------ actions


def test_canceling_asks_back_and_then_calls_the_operation(
    admin: Client, owner: Principal, canceled: list[tuple[str, str]]
) -> None:
    one, two = task(owner), task(owner)
    asked = act(admin, "task", "cancel_selected", one.pk, two.pk, confirmed=False)
    assert "Cancel 2 tasks?" in asked.content.decode()
    assert "agent echo: 2 tasks, submitted" in asked.content.decode()
    assert one.pk in asked.content.decode()
    assert canceled == []
    done = act(admin, "task", "cancel_selected", one.pk, two.pk)
    assert sorted(canceled) == sorted([(one.pk, "ada"), (two.pk, "ada")])
    assert told(done) == ["Canceled: 2 tasks."]


def test_the_page_of_a_task_has_a_button_that_cancels(
    admin: Client, owner: Principal, canceled: list[tuple[str, str]]
) -> None:
    row = task(owner)
    address = reverse("admin:tasks_app_task_cancel", args=[row.pk])
    assert f'action="{address}"' in page(admin, "task", row.pk)
    assert admin.get(address).status_code == 405
    assert canceled == []
    assert told(admin.post(address, follow=True)) == ["Canceled: 1 task."]
    assert canceled == [(row.pk, "ada")]


def test_the_button_wants_a_csrf_token(owner: Principal, canceled: list[tuple[str, str]]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    assert client.post(reverse("admin:tasks_app_task_cancel", args=[task(owner).pk])).status_code == 403
    assert canceled == []


def test_a_task_that_has_ended_has_no_button(admin: Client, owner: Principal) -> None:
    assert "td-stop" not in page(admin, "task", task(owner, StatusChanged(status=status(TaskState.COMPLETED))).pk)


def test_each_refusal_to_cancel_is_told(admin: Client, owner: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, gone, fine = task(owner), task(owner), task(owner)
    errors = {ended.pk: TaskNotCancelable(), gone.pk: TaskNotFound()}

    def refuse(task_id: str, by: Operator) -> None:
        if task_id in errors:
            raise errors[task_id]
        if task_id == "nobody":
            raise TaskNotFound

    monkeypatch.setattr(operations, "cancel_for_operator", refuse)
    said = told(act(admin, "task", "cancel_selected", gone.pk, ended.pk, fine.pk, "nobody"))
    assert said == [
        "Canceled: 1 task.",
        f"{gone.pk} and 1 more: Task not found.",
        f"{ended.pk}: Task cannot be canceled.",
    ]
    answer = admin.post(reverse("admin:tasks_app_task_cancel", args=[ended.pk]), follow=True)
    assert told(answer) == [f"{ended.pk}: Task cannot be canceled."]


def test_revoking_asks_back_and_ends_the_key(admin: Client) -> None:
    for name in ("olga", "boris"):
        access.new_key(name, tenant="acme")
    row = ApiKey.objects.get(principal__name="olga")
    asked = act(admin, "apikey", "revoke", str(row.pk), confirmed=False)
    assert "Revoke 1 API key?" in asked.content.decode()
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    assert told(act(admin, "apikey", "revoke", str(row.pk))) == ["Revoked 1 API key."]
    assert list(ApiKey.objects.exclude(revoked_at=None)) == [row]
    assert told(act(admin, "apikey", "revoke", str(row.pk))) == ["All selected keys are already revoked."]


def test_the_digest_of_a_key_is_never_shown(admin: Client) -> None:
    access.new_key("olga", tenant="acme")
    row = ApiKey.objects.get()
    assert row.digest not in page(admin, "apikey", str(row.pk))
    assert row.digest not in admin.get(reverse("admin:tasks_app_apikey_changelist")).content.decode()


# -------------------------------------------------------------------- speed


def test_pages_take_a_bounded_number_of_queries(
    admin: Client, owner: Principal, answers: dict[str, str], django_assert_max_num_queries: Any
) -> None:
    rows = [task(owner, *(StatusChanged(status=status(TaskState.WORKING)) for _ in range(20))) for _ in range(5)]
    calls = [exchange(owner, request_id="r-1", task_id=rows[0].pk) for _ in range(20)]
    for model in ("exchange", "task"):
        address = reverse(f"admin:tasks_app_{model}_changelist")
        # Two to know the user, one a filter by what occurs, one for the states of the tasks.
        with django_assert_max_num_queries(9):
            admin.get(address)
        with django_assert_max_num_queries(14):  # one a kind of id, one for the reference of a failure
            admin.get(address, {"q": rows[0].pk})
    with django_assert_max_num_queries(6):
        page(admin, "exchange", calls[0].pk)
    with django_assert_max_num_queries(9):
        page(admin, "task", rows[0].pk)


# ---------------------------------------------------------------- addresses


def test_the_way_out_of_the_admin_leads_to_something_to_see(admin: Client) -> None:
    shown = admin.get(reverse("admin:index")).content.decode()
    (address,) = re.findall(r'<a href="([^"]*)">View site</a>', shown)
    response = Client().get(address, headers={"Accept": "text/html"})
    assert response.status_code == 200
    assert '<h3 id="agent-echo">' in response.content.decode()


@pytest.mark.parametrize("person", ["operator", "nobody"])
def test_the_admin_is_found_without_its_slash(admin: Client, person: str) -> None:
    response = (admin if person == "operator" else Client()).get("/admin")
    assert (response.status_code, response.headers["Location"]) == (302, "/admin/")
    assert not is_lean("/admin")


# ----------------------------------------------------------------- commands


def run(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    """The JSON lines a command prints, and the sentence of its failure."""
    out = StringIO()
    sentence = ""
    try:
        call_command(*arguments, stdout=out)
    except CommandError as error:
        sentence = f"{error.returncode}: {error}"
    return [orjson.loads(line) for line in out.getvalue().splitlines()], sentence


def test_the_command_finds_exchanges_by_any_id(owner: Principal) -> None:
    row = exchange(owner, '{"id": 7}', rpc_id="abc", task_id=uuid7())
    for key in (row.pk, row.request_id, "abc", str(row.task_id)):
        [found], _ = run("exchanges", key)
        assert found["id"] == row.pk
        assert found["caller"] == "olga"
        assert "request" not in found
    sentence = "1: There is no exchange with the id or reference 'nobody', or it was deleted because of its age."
    assert run("exchanges", "nobody") == ([], sentence)


def test_the_command_lists_the_newest_exchanges_by_what_is_asked_for(owner: Principal) -> None:
    times = [datetime(2020, 1, 1, 2, 38, 27, 123_000, tzinfo=UTC)]
    times += [timezone.now() - timedelta(seconds=seconds) for seconds in (3, 2, 1)]
    ids = [uuid7_at(time) for time in times]
    old = exchange(owner, id=ids[0], method="GetTask")
    refused = exchange(None, id=ids[1], outcome="refused", http_status=401, method="", door="rest", peer="203.0.113.7")
    silent = exchange(owner, id=ids[2], outcome="", http_status=None, method="none", dialect="a2a-0.3")
    newest = exchange(owner, id=ids[3])
    for words, rows in (
        ((), [newest, silent, refused, old]),
        (("--limit", "2"), [newest, silent]),
        (("--outcome", "result"), [newest, old]),
        (("--outcome", "none"), [silent]),
        (("--status", "401"), [refused]),
        (("--door", "rest"), [refused]),
        (("--method", "GetTask"), [old]),
        (("--dialect", "a2a-0.3"), [silent]),
        (("--caller", "olga", "--status", "200"), [newest, old]),
        (("--since", "1h"), [newest, silent, refused]),
        (("--since", "2020-01-01T02:38:27.123", "--method", "GetTask"), [old]),
        (("--since", "2020-01-01T03:38:27.124+01:00", "--method", "GetTask"), []),
        (("--method", "none", "--outcome", "error"), []),
        (("--caller", "nobody"), []),
        (("--peer", "203.0.113.7"), [refused]),
    ):
        lines, sentence = run("exchanges", "list", *words)
        assert ([line["id"] for line in lines], sentence) == ([row.pk for row in rows], ""), words
    [found], _ = run("exchanges", "list", "--limit", "1", "--bodies")
    assert (found["caller"], found["request"]) == ("olga", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("list", "--outcome", "fine"), "argument --outcome: invalid choice: 'fine'"),
        (("list", "--status", "99"), "argument --status: must be a number from 100 to 599, not '99'"),
        (("list", "--limit", "10001"), "argument --limit: must be a number from 1 to 10,000, not '10001'"),
        (
            ("list", "--since", "soon"),
            "argument --since: must be a time such as 2026-11-21T03:00 or an age such as 15m",
        ),
        (("7", "--door", "rest"), "--door is for `exchanges list`, not for an id."),
    ],
)
def test_the_command_says_what_it_cannot_choose_exchanges_by(words: tuple[str, ...], sentence: str) -> None:
    assert sentence in run("exchanges", *words)[1]


def test_the_command_prints_bodies_to_the_letter(owner: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "response_text", lambda row: "derived")
    row = exchange(owner, '{"id":  7}')
    [found], _ = run("exchanges", row.pk, "--bodies")
    assert (found["request"], found["response"]) == ('{"id":  7}', "derived")


def test_the_command_shows_and_lists_tasks(owner: Principal) -> None:
    row = task(owner, StatusChanged(status=status(TaskState.FAILED, "no")), context_id="chat")
    Run.objects.create(task=row, number=1, worker="w", ended_at=NOW, outcome="failed", traceback="boom")
    task(owner, agent="story")
    [shown], _ = run("tasks", "show", row.pk)
    assert shown["owner"] == "olga"
    assert shown["task"]["status"]["state"] == "TASK_STATE_FAILED"
    assert [event["seq"] for event in shown["events"]] == [1, 2]
    assert shown["runs"][0]["traceback"] == "boom"
    assert [line["id"] for line in run("tasks", "show", "chat")[0]] == [row.pk]
    assert [line["id"] for line in run("tasks", "list", "--state", "failed")[0]] == [row.pk]
    assert [line["agent"] for line in run("tasks", "list", "--agent", "story")[0]] == ["story"]
    assert len(run("tasks", "list", "--limit", "1")[0]) == 1
    old = task(owner, id=uuid7_at(timezone.now() - timedelta(days=3)))
    assert old.pk not in {line["id"] for line in run("tasks", "list", "--since", "1d")[0]}
    assert [line["id"] for line in run("tasks", "list", "--since", "7d")[0]][-1] == old.pk
    assert run("tasks", "list", "--state", "rejected") == ([], "")
    assert (
        run("tasks", "show", "nobody")[1]
        == "1: There is no task with the id, context id or reference 'nobody', or it was deleted because of its age."
    )


def test_the_command_cancels_through_the_operation(owner: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def cancel(task_id: str, by: Operator) -> None:
        if task_id == "nobody":
            raise TaskNotFound
        calls.append((task_id, by.name))

    monkeypatch.setattr(operations, "cancel_for_operator", cancel)
    lines, sentence = run("tasks", "cancel", "a", "nobody", "--operator", "ada")
    assert calls == [("a", "ada")]
    assert [line["canceled"] for line in lines] == [True, False]
    assert lines[1]["reason"] == "TASK_NOT_FOUND"
    assert sentence == "1: 1 of 2 not canceled."


def test_the_processes_are_listed_with_their_troubles(admin: Client) -> None:
    now = timezone.now()
    Process.objects.create(
        name="host:1:abc",
        role="worker",
        version="1",
        started_at=now,
        seen_at=now,
        clock_off=172_800.5,
        troubles='["clock: <b>wrong</b>"]',
    )
    shown = admin.get(reverse("admin:tasks_app_process_changelist")).content.decode()
    assert "host:1:abc" in shown
    assert "172800.5" in shown
    assert "clock: &lt;b&gt;wrong&lt;/b&gt;" in shown
    assert admin.get(reverse("admin:tasks_app_process_add")).status_code == 403
