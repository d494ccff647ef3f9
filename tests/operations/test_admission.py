"""Refusals when an owner, an agent or the server has enough in flight, and calls that are never refused."""

import asyncio
import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient, AsyncRequestFactory

from a2a.errors import RateLimited, Unavailable
from a2a.requests import CancelTask
from a2a.states import TaskState
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.limits.accounts import Account
from tasks_app.models import IdempotencyKey, Task
from tasks_app.operations.dispatcher import _drive
from tasks_app.operations.operation import Await, CallerLeft, Context, Grant, Wait
from tasks_app.process.counting import census
from tasks_app.transports.enveloped import jsonrpc
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message, send, sent, text_of
from tests.support.accounts import holdings
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
ASYNC = "form-coroutine"


async def holds(account: Account, *expected: tuple[str, str, int]) -> None:
    """Wait until this is what the account holds."""
    async with asyncio.timeout(PATIENCE):
        while holdings(account) != list(expected):  # noqa: ASYNC110  # an account announces no change
            await asyncio.sleep(0.005)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, lanes: None, settings: Any) -> Iterator[Account]:
    """Give the account of a process that was just started, in which an owner may have three tasks and all five."""
    settings.A2A_OWNER_TASKS, settings.A2A_AGENT_TASKS, settings.A2A_TASKS = 3, 4, 5
    fresh = Account()
    places = ("process.counting", "operations.send", "operations.follow_up", "operations.operation", "operations.room")
    for place in (*places, "transports.answers", "transports.handling"):
        monkeypatch.setattr(f"tasks_app.{place}.account", fresh)
    monkeypatch.setattr(census, "last", None)
    census.count()
    return fresh


def queued(person: Person, number: int = 1, agent: str = ASYNC) -> list[str]:
    return [sent(person, agent=agent, return_immediately=True).id for _ in range(number)]


def test_beyond_the_cap_an_owner_is_refused_and_others_are_not(
    account: Account, owner: Person, colleague: Person, stranger: Person
) -> None:
    queued(owner, 3)
    with pytest.raises(RateLimited) as refused:
        queued(owner)
    wait = str(refused.value.retry_after)
    assert refused.value.facts == {"limit": "unfinished tasks", "most": "3", "retryAfter": wait}
    assert Task.objects.count() == IdempotencyKey.objects.count() == 3, "what is refused leaves nothing"
    queued(colleague)
    queued(stranger, agent="form-function")
    with pytest.raises(Unavailable):
        queued(stranger, agent="form-function")


def test_a_caller_who_left_has_nothing_in_flight(account: Account, owner: Person) -> None:
    async def leave() -> None:
        raise CallerLeft

    async def operation() -> Grant:
        with account.new_work(owner.caller.owner_id, "gate"):
            await Await(leave)
        return Wait(task_id="", context_id="", after=0, history_length=None)

    with pytest.raises(CallerLeft) as error:  # The error keeps its traceback, with all frames that it passed.
        asyncio.run(_drive(operation(), Context(caller=owner.caller, actor="caller")))
    assert error.value.__traceback__
    assert not any(account.pending.values())


def test_an_agent_has_a_cap_over_all_owners(account: Account, owner: Person, colleague: Person) -> None:
    queued(owner, 2)
    queued(colleague, 2)
    with pytest.raises(Unavailable) as refused:
        queued(colleague)
    assert refused.value.facts["limit"] == "unfinished tasks of the agent"
    queued(colleague, agent="form-function")


def test_the_census_counts_the_tasks_in_the_database(account: Account, owner: Person, colleague: Person) -> None:
    tasks = queued(owner, 3)
    queued(colleague, agent="form-function")
    Task.objects.filter(pk=tasks[0]).update(state="working")
    census.count()
    mine, theirs = (f"owner:{person.caller.owner_id}" for person in (owner, colleague))
    assert dict(account.counted) == {mine: 3, theirs: 1, f"agent:{ASYNC}": 3, "agent:form-function": 1, "all": 4}
    Task.objects.filter(pk=tasks[0]).update(state="submitted")
    ask(owner, CancelTask(id=tasks[0]))
    with pytest.raises(RateLimited):
        queued(owner)
    census.count()
    queued(owner)


def test_counting_goes_on_as_long_as_a_cap_is_reached(account: Account, owner: Person) -> None:
    tasks = queued(owner, 3)
    census.count()
    assert account.count_due.is_set(), "else a caller who waits as it was told is refused by this old count"
    ask(owner, CancelTask(id=tasks[0]))
    census.count()
    assert not account.count_due.is_set()
    queued(owner)


def test_a_message_that_was_accepted_is_never_refused(account: Account, owner: Person) -> None:
    queued(owner, 2)
    said = message("again")
    first = sent(owner, said, ASYNC, return_immediately=True)
    with pytest.raises(RateLimited):
        queued(owner)
    assert sent(owner, said, ASYNC, return_immediately=True).id == first.id


def test_an_answer_inside_the_call_takes_no_place(account: Account, owner: Person) -> None:
    queued(owner, 3)
    assert text_of(sent(owner, "hello", "echo")) == "hello"


def test_a_message_that_makes_a_task_runnable_again_counts(account: Account, owner: Person) -> None:
    task = sent(owner, "hello", "asks-quickly")
    assert task.status.state == TaskState.INPUT_REQUIRED
    queued(owner, 3)
    with pytest.raises(RateLimited):
        send(owner, message("this one", task_id=task.id), return_immediately=True)
    assert Task.objects.get(pk=task.id).state == TaskState.INPUT_REQUIRED


def post(person: Person, path: str, wire: Any) -> Any:
    return AsyncRequestFactory().post(
        path, json.dumps(wire), content_type="application/json", headers={"Authorization": f"Bearer {person.key}"}
    )


SENT = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}


async def test_a_refusal_is_a_429_with_the_time_to_come_again(account: Account, owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_TASKS = 0
    params = {"message": SENT, "metadata": {"agent": ASYNC}}
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    client, headers = AsyncClient(), {"Authorization": f"Bearer {owner.key}"}
    over_rpc = await client.post("/jsonrpc", wire, content_type="application/json", headers=headers)
    over_rest = await client.post("/message:send", params, content_type="application/json", headers=headers)
    assert (over_rpc.status_code, over_rest.status_code) == (429, 429)
    assert over_rpc["Retry-After"] == over_rest["Retry-After"] == "60", "nothing has ended yet"
    error = json.loads(over_rpc.content)["error"]
    assert (error["code"], error["data"][0]["reason"]) == (-38008, "RATE_LIMITED")
    assert error["data"][0]["metadata"] == {"limit": "unfinished tasks", "most": "0", "retryAfter": "60"}
    assert json.loads(over_rest.content)["error"]["status"] == "RESOURCE_EXHAUSTED"


async def test_a_stream_beyond_the_cap_makes_no_task(
    account: Account, owner: Person, colleague: Person, settings: Any
) -> None:
    settings.A2A_OWNER_STREAMS = 1
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": SENT}}
    first = await jsonrpc(post(owner, "/", wire), agent=ASYNC)
    assert isinstance(first, StreamingHttpResponse)
    chunks: Any = aiter(first.streaming_content)  # type: ignore[arg-type]
    await anext(chunks)
    other = {**wire, "params": {"message": {**SENT, "messageId": "n"}}}
    refused = await jsonrpc(post(owner, "/", other), agent=ASYNC)
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert await bridge.ask(Do(Task.objects.count)) == 1
    theirs = await jsonrpc(post(colleague, "/", wire), agent=ASYNC)
    assert isinstance(theirs, StreamingHttpResponse)
    await chunks.aclose()
    del chunks, first
    await holds(account, ("streams", colleague.caller.owner_id, 1))  # The loop ends a stream without a reader.
    # A response without a reader is released with its stream.
    del theirs
    assert holdings(account) == []


async def test_the_large_beginning_of_a_subscription_counts_until_it_is_sent(
    account: Account, owner: Person, settings: Any
) -> None:
    settings.A2A_OWNER_BODY_BYTES = 100_000
    params = {
        "message": {**SENT, "parts": [{"text": "x" * 60_000}]},
        "configuration": {"returnImmediately": True},
    }
    sending = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    made: Any = await jsonrpc(post(owner, "/", sending), agent=ASYNC)
    task_id = json.loads(made.content)["result"]["task"]["id"]
    made.close()
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}
    first: Any = await jsonrpc(post(owner, "/", wire))
    refused = await jsonrpc(post(owner, "/", wire))
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    chunks: Any = aiter(first.streaming_content)
    assert len(await anext(chunks)) > 60_000
    following = asyncio.ensure_future(anext(chunks))
    await holds(account, ("streams", owner.caller.owner_id, 1))  # The stream is open after its first frame.
    following.cancel()


async def test_a_stream_that_is_refused_gives_its_place_back_at_once(account: Account, owner: Person) -> None:
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": "none"}}
    gc.disable()
    try:
        for _ in range(3):
            assert b"TASK_NOT_FOUND" in (await jsonrpc(post(owner, "/", wire))).content  # type: ignore[attr-defined]
        assert holdings(account) == []
    finally:
        gc.enable()


@pytest.mark.usefixtures("service")
def test_the_census_follows_what_is_made_and_ended(owner: Person) -> None:
    from tasks_app.limits.accounts import account

    def known() -> int:
        return account.counted.get(f"owner:{owner.caller.owner_id}", 0)

    assert PATIENCE > 2
    task = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: known() == 1, "the task is counted")
    ask(owner, CancelTask(id=task.id))
    sent(owner, "hello", ASYNC)
    # A count during the last task is used until the next task is made.
    until(lambda: known() == 0 or account.count_due.set(), "it is known that nothing is under way")


def test_operators_see_who_waits_for_what(account: Account, owner: Person, stranger: Person) -> None:
    queued(owner, 2)
    (task,) = queued(stranger, agent="form-function")
    Task.objects.filter(pk=task).update(state="working")
    total, *rows = printed("a2a", "load")
    assert total == {
        "owner": None,
        "agent": None,
        "queued": 2,
        "running": 1,
        "most": {"owner": 3, "agent": 4, "all": 5},
    }
    assert [(row["tenant"], row["owner"], row["agent"], row["queued"], row["running"]) for row in rows] == [
        ("home", "owner", ASYNC, 2, 0),
        ("abroad", "stranger", "form-function", 0, 1),
    ]
    Task.objects.filter(pk=task).update(state="submitted")
