"""`manage.py exchanges`: finds, lists and prints exchanges."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app.exchanges import responses
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Event, Principal
from tests.support.commands import printed, run
from tests.support.operators import exchange, status, task

pytestmark = pytest.mark.django_db


def test_the_command_finds_exchanges_by_any_id(olga: Principal) -> None:
    row = exchange(olga, '{"id": 7}', rpc_id="abc", task_id=uuid7(), envelope="jsonrpc")
    for key in (row.pk, row.request_id, "abc", str(row.task_id)):
        (found,) = printed("exchanges", key)
        assert found["id"] == row.pk
        assert (found["caller"], found["envelope"]) == ("olga", "jsonrpc")
        assert "request" not in found
    sentence = "There is no exchange with the id or reference 'nobody', or it was deleted because of its age."
    assert run("exchanges", "nobody") == ([], sentence, 1)


def test_the_command_lists_the_newest_exchanges_by_what_is_asked_for(olga: Principal) -> None:
    times = [datetime(2020, 1, 1, 2, 38, 27, 123_000, tzinfo=UTC)]
    times += [timezone.now() - timedelta(seconds=seconds) for seconds in (3, 2, 1)]
    ids = [uuid7_at(time) for time in times]
    old = exchange(olga, id=ids[0], method="GetTask")
    unread = {"outcome": "refused", "http_status": 401, "method": "", "dialect": ""}
    refused = exchange(None, id=ids[1], **unread, door="rest", peer="203.0.113.7")
    silent = exchange(olga, id=ids[2], outcome="", http_status=None, method="none", dialect="a2a-0.3")
    newest = exchange(olga, id=ids[3])
    for words, rows in (
        ((), [newest, silent, refused, old]),
        (("--limit", "2"), [newest, silent]),
        (("--outcome", "result"), [newest, old]),
        (("--outcome", "none"), [silent]),
        (("--status", "401"), [refused]),
        (("--door", "rest"), [refused]),
        (("--method", "GetTask"), [old]),
        (("--dialect", "a2a-0.3"), [silent]),
        (("--dialect", "none"), [refused]),
        (("--caller", "olga", "--status", "200"), [newest, old]),
        (("--since", "1h"), [newest, silent, refused]),
        (("--since", "2020-01-01T02:38:27.123", "--method", "GetTask"), [old]),
        (("--since", "2020-01-01T03:38:27.124+01:00", "--method", "GetTask"), []),
        (("--method", "none", "--outcome", "error"), []),
        (("--caller", "nobody"), []),
        (("--peer", "203.0.113.7"), [refused]),
    ):
        lines = printed("exchanges", "list", *words)
        assert [line["id"] for line in lines] == [row.pk for row in rows], words
    (found,) = printed("exchanges", "list", "--limit", "1", "--bodies")
    assert (found["caller"], found["request"]) == ("olga", "")


def test_the_command_prints_a_call_whose_answer_is_in_a_damaged_log(olga: Principal) -> None:
    row = task(olga, StatusChanged(status=status(TaskState.WORKING)))
    damaged = exchange(olga, "{}", task_id=row.pk, context_id=row.context_id, envelope="jsonrpc", last_seq=2)
    Event.objects.filter(task_id=row.pk, seq=2).update(payload="{damaged")
    (found,) = printed("exchanges", damaged.pk, "--bodies")
    assert (found["request"], found["response"]) == ("{}", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("list", "--outcome", "fine"), "argument --outcome: invalid choice: 'fine'"),
        (("list", "--door", "websockets"), "argument --door: invalid choice: 'websockets'"),
        (("list", "--dialect", "a2a-0.4"), "argument --dialect: invalid choice: 'a2a-0.4'"),
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
    assert sentence in run("exchanges", *words).errors


def test_the_command_prints_bodies_to_the_letter(olga: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "response_text", lambda row: "derived")
    row = exchange(olga, '{"id":  7}')
    (found,) = printed("exchanges", row.pk, "--bodies")
    assert (found["request"], found["response"]) == ('{"id":  7}', "derived")
