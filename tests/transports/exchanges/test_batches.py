"""Exchanges of batches, of large lists and of notifications."""

import json
from typing import Any

import pytest

from a2a.errors import RateLimited
from tasks_app.exchanges.responses import response_text
from tasks_app.limits.accounts import account
from tasks_app.models import Task
from tasks_app.off_loop import LARGE
from tasks_app.transports import receiving
from tests.conftest import Person
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import Post, call, new, without_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_every_member_of_a_batch_has_one_exchange(post: Post) -> None:
    members = [
        new(rpc_id="a"),
        new(rpc_id=2, agent="replies"),
        without_id(new()),
        call("nope", {}, 4),
        5,
        call("ListTasks", {}, None),
        without_id(call("nope", {})),
        new(rpc_id=8, agent="form-coroutine"),
    ]
    status, content = post(members)
    assert status == 200
    answers = [json.dumps(answer, sort_keys=True) for answer in json.loads(content)]
    found = recorded(8)
    assert len({exchange.request_id for exchange in found}) == 1
    ids = [(exchange.rpc_id_type, exchange.rpc_id, exchange.outcome) for exchange in found]
    assert sorted(found for found in ids if found[1]) == [
        ("number", "2", "result"),
        ("number", "4", "error"),
        ("number", "8", "result"),
        ("string", "a", "result"),
    ]
    assert sorted(exchange.outcome for exchange in found if exchange.rpc_id_type == "absent") == [
        "notified",
        "notified",
    ]
    shown = [response_text(exchange) for exchange in found if exchange.outcome != "notified"]
    assert sorted(json.dumps(json.loads(text), sort_keys=True) for text in shown) == sorted(answers)


def test_members_whose_turn_comes_when_enough_was_answered_are_refused_undone(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "AT_ONCE", 1)
    monkeypatch.setattr(receiving, "BATCH_BYTES", 1_000)
    _, content = post([new("x" * 600, rpc_id=1), new(rpc_id=2), call("ListTasks", {}, 3), without_id(new())])
    first, *others = json.loads(content)
    assert len(json.dumps(first)) > 1_000
    assert "result" in first
    assert [(other["id"], other["error"]["code"]) for other in others] == [(2, -32600), (3, -32600)]
    for other in others:
        assert "1000 bytes in all; send the rest anew" in other["error"]["message"]
    assert Task.objects.count() == 1
    outcomes = {exchange.rpc_id: exchange.outcome for exchange in recorded(4)}
    assert outcomes == {"1": "result", "2": "error", "3": "error", None: "notified"}


def test_a_large_list_is_recorded_by_its_ids(post: Post) -> None:
    ids = [json.loads(post(new("x" * 6_000))[1])["result"]["task"]["id"] for _ in range(4)]
    _, content = post(call("ListTasks", {}))
    *_, listed = recorded(5)
    kept = json.loads(response_text(listed))
    assert (kept["tasks"], kept["totalSize"]) == (ids[::-1], 4)
    assert listed.response_bytes == len(content) > 20_000 > len(response_text(listed))


def test_a_small_list_is_recorded_as_it_was(post: Post) -> None:
    post(new())
    _, content = post(call("ListTasks", {"pageSize": 1}))
    *_, listed = recorded(2)
    assert json.loads(response_text(listed)) == json.loads(content)


def test_lists_of_a_batch_come_one_after_another(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "BATCH_BYTES", 30_000)
    post(new("x" * 20_000))
    post(new("x" * 20_000))
    _, content = post([call("ListTasks", {}, number) for number in range(8)])
    answers = json.loads(content)
    assert ["result" in answer for answer in answers] == [True] + [False] * 7
    assert "30000 bytes in all" in answers[-1]["error"]["message"]


def test_answers_to_reads_count_in_the_account_until_they_are_sent(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES = 100_000
    task = json.loads(post(new("x" * 60_000))[1])["result"]["task"]["id"]
    weighed: list[int] = []
    take = account.take

    def spy(owner_id: int | None, kind: str, amount: int = 1) -> None:
        weighed.append(amount)
        take(owner_id, kind, amount)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account, "take", spy)
        for _ in range(3):
            assert "result" in json.loads(post(call("GetTask", {"id": task}))[1])
        first, second = json.loads(post([call("GetTask", {"id": task}, 1), call("GetTask", {"id": task}, 2)])[1])
    assert sorted("result" in answer for answer in (first, second)) == [False, True]
    assert [answer["error"]["code"] for answer in (first, second) if "error" in answer] == [-38008]
    assert len(weighed) == 5
    assert not account.amounts["bodies", owner.caller.owner_id]


def test_small_answers_of_a_batch_count_together_until_they_are_sent(post: Post, owner: Person, settings: Any) -> None:
    task = json.loads(post(new("x" * 5_000))[1])["result"]["task"]["id"]
    size = len(post(call("GetTask", {"id": task}))[1])
    assert size < LARGE
    settings.A2A_OWNER_BODY_BYTES = 4 * size
    answers = json.loads(post([call("GetTask", {"id": task}, number) for number in range(8)])[1])
    assert 2 <= sum("result" in answer for answer in answers) <= 4
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-38008}
    assert not account.amounts["bodies", owner.caller.owner_id]
    assert "result" in json.loads(post(call("GetTask", {"id": task}))[1])


def test_a_large_answer_that_was_refused_is_not_kept_by_its_error(
    post: Post, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_OWNER_BODY_BYTES = 50_000
    task = json.loads(post(new("x" * 60_000))[1])["result"]["task"]["id"]
    errors: list[RateLimited] = []

    class Spied(RateLimited, twin=True):
        def __init__(self, *arguments: Any, **facts: str) -> None:
            super().__init__(*arguments, **facts)
            errors.append(self)

    monkeypatch.setattr("tasks_app.limits.accounts.RateLimited", Spied)
    post([call("GetTask", {"id": task}, 1), call("GetTask", {"id": task}, 2)])
    [error] = errors
    assert error.__traceback__ is None


@pytest.mark.parametrize("agent", ["echo", "replies", "form-coroutine"])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.requirement("ACP-05")
def test_a_notification_is_recorded_as_one(post: Post, agent: str, method: str) -> None:
    status, content = post(without_id(new(agent=agent, method=method)))
    assert (status, content) == (204, b"")
    (exchange,) = recorded(1)
    assert (exchange.outcome, exchange.http_status, exchange.rpc_id_type) == ("notified", 204, "absent")
