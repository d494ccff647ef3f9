"""Failures of remote agents: what the caller reads, what is tried again, and what is never sent twice."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from django.db import connections

from a2a.client import errors
from a2a.client.patience import Retries
from a2a.failures import Retry
from a2a.types import Task
from tasks_app.models import RelayedTask, Run
from tasks_app.relays import registration, relayed_tasks
from tasks_app.relays.remotes import client_of, room_of
from tasks_app.relays.translation import failure_of
from tests.client_library import faulty
from tests.client_library.faulty import Act, Asked, Faulty, chunk, drop, error, events, half, plain, status, task
from tests.conftest import Person
from tests.operations.asking import sent, text_of
from tests.relays.conftest import AddRelay

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
SECRET = "tdk_a-secret-of-this-server"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls and attempts follow each other at once."""
    monkeypatch.setattr(registration, "BACKOFF", 0.0)
    monkeypatch.setattr(Retries, "pause", lambda *_: 0.0)


def card(streaming: bool = True) -> Act:
    """Answer with a card of 1.0 that leads back to the server."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        url = f"http://{asked.headers['host']}/"
        interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        wire = {"name": "far", "supportedInterfaces": [interface], "capabilities": {"streaming": streaming}}
        await plain(200, orjson.dumps(wire))(asked, writer)

    return act


@asynccontextmanager
async def remote(*script: Act, streaming: bool = True) -> AsyncIterator[Faulty]:
    async with faulty.faulty(card(streaming), *script) as server:
        yield server


async def in_thread(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function that reads or writes rows, in a thread that leaves no connection behind."""

    def call() -> Any:
        try:
            return function(*arguments, **options)
        finally:
            connections.close_all()

    return await asyncio.to_thread(call)


async def added(add_relay: AddRelay, url: str, **options: Any) -> str:
    return await in_thread(add_relay, url, **options)


async def relayed(owner: Person, name: str, text: str = "hello") -> Task:
    return await in_thread(sent, owner, text, name)


def first(state: str, texts: Sequence[str] = ()) -> Any:
    """Return a task as the first event of a stream."""
    return {"task": task(state, texts)}


def words(result: Task) -> str:
    assert result.status.message
    return result.status.message.text


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (plain(401), "The credentials for the remote agent are missing or do not suffice (UNAUTHENTICATED)."),
        (plain(403), "The credentials for the remote agent are missing or do not suffice (MISSING_SCOPE)."),
        (plain(302, Location="http://127.0.0.1/"), "The remote agent refused the message (HTTP_302): "),
        (plain(200, b"<html>", "text/html"), "The answer of the remote agent is not A2A, or it is too large."),
        (error(-32602, f"no: {SECRET}"), "The remote agent refused the message (INVALID_PARAMS): no: [redacted]."),
        (events((None, {"statusUpdate": {}})), "The answer of the remote agent is not A2A, or it is too large."),
    ],
    ids=["401", "403", "redirect", "html", "refusal", "no event"],
)
async def test_an_error_that_stays_fails_the_task_at_once(
    owner: Person, add_relay: AddRelay, act: Act, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with remote(act) as server:
        result = await relayed(owner, await added(add_relay, server.url, key=SECRET))
    assert result.status.state == "failed"
    assert words(result).startswith(sentence)
    assert len(server.asked) == 2
    assert SECRET not in caplog.text + words(result) + str(await in_thread(list, Run.objects.values()))


@pytest.mark.parametrize("act", [plain(503), plain(429), drop, half], ids=["503", "429", "drop", "half"])
async def test_an_error_that_passes_leads_to_another_attempt_under_the_same_message_id(
    owner: Person, add_relay: AddRelay, act: Act
) -> None:
    done = events((None, first("TASK_STATE_COMPLETED", ["done"])))
    async with remote(act, act, act, act, act, done) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert (result.status.state, text_of(result)) == ("completed", "done")
    ids = {asked.wire["params"]["message"]["messageId"] for asked in server.asked if asked.verb == "POST"}
    assert len(ids) == 1
    assert len(server.asked) == 7


def test_a_large_message_whose_connection_was_cut_leads_to_another_attempt() -> None:
    failure = failure_of(errors.LargeMessageLost("the connection was lost"))
    assert isinstance(failure, Retry)
    assert str(failure) == "The connection to the remote agent was lost: the message may be larger than it takes."


async def test_a_large_answer_that_finds_no_room_beside_unfinished_ones_leads_to_another_attempt(
    owner: Person, add_relay: AddRelay
) -> None:
    done = events((None, first("TASK_STATE_COMPLETED", ["x" * 300_000])))
    async with remote(done) as server, remote(done) as neighbour:
        name, other = await added(add_relay, server.url, attempts=2), await added(add_relay, neighbour.url)
        with room_of(name).part("") as part:
            part.hold(room_of(name).most)
            full = await relayed(owner, name)
            beside = await relayed(owner, other)
        later = await relayed(owner, name)
    assert [one.status.state for one in (full, beside, later)] == ["failed", "completed", "completed"]
    assert words(full) == "Attempt 2 of 2 failed: Too many large answers of the remote agent are still arriving."


async def test_runs_that_begin_together_read_the_card_once(
    owner: Person, add_relay: AddRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remote(drop) as server:
        relay = registration.RelayOptions(name=await added(add_relay, server.url), url=server.url)
        clients = await asyncio.gather(*(client_of(relay) for _ in range(20)))
        cards = await asyncio.gather(*(client.card() for client in clients))
    assert [card.name for card in cards] == ["far"] * 20
    assert len(server.asked) == 1


async def test_a_remote_agent_that_is_not_there_fails_the_task_after_all_attempts(
    owner: Person, add_relay: AddRelay
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        name = await added(add_relay, f"http://127.0.0.1:{nobody.getsockname()[1]}", attempts=2)
        result = await relayed(owner, name)
    assert (result.status.state, words(result)) == (
        "failed",
        "Attempt 2 of 2 failed: The remote agent cannot be reached.",
    )


async def test_an_address_that_is_not_allowed_is_never_called(
    owner: Person, add_relay: AddRelay, settings: Any
) -> None:
    async with remote(drop) as server:
        name = await added(add_relay, server.url)
        settings.A2A_OUTBOUND_LOOPBACK = False
        result = await relayed(owner, name)
    assert words(result) == "The address of the remote agent is not allowed here: see A2A_OUTBOUND_HOSTS."
    assert server.asked == []


async def test_a_stream_that_breaks_goes_on_behind_its_last_event(owner: Person, add_relay: AddRelay) -> None:
    begin = events(("1", first("TASK_STATE_WORKING")), ("2", chunk("one ", append=False)))
    ended = ("4", status("TASK_STATE_COMPLETED"))
    rest = events(("2", first("TASK_STATE_WORKING", ["one "])), ("3", chunk("two")), ended)
    async with remote(begin, rest) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert (result.status.state, text_of(result)) == ("completed", "one two")
    assert server.asked[-1].headers["last-event-id"] == "2"


async def test_the_task_of_an_agent_that_does_not_stream_is_read_until_it_ends(
    owner: Person, add_relay: AddRelay
) -> None:
    script = [
        faulty.result({"task": task("TASK_STATE_WORKING")}),
        faulty.result(task("TASK_STATE_WORKING", ["one "])),
        faulty.result(task("TASK_STATE_COMPLETED", ["one ", "two"])),
    ]
    async with remote(*script, streaming=False) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert (result.status.state, text_of(result)) == ("completed", "one two")
    methods = [asked.wire["method"] for asked in server.asked if asked.verb == "POST"]
    assert methods == ["SendMessage", "GetTask", "GetTask"]


async def test_a_remote_task_that_is_gone_fails_and_is_not_begun_again(owner: Person, add_relay: AddRelay) -> None:
    begin = events(("1", first("TASK_STATE_WORKING", ["one "])))
    async with remote(begin, error(-32001, "no such task")) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert words(result) == "The remote agent no longer has the task. Its results so far are kept."
    assert text_of(result) == "one "
    assert [asked.wire["method"] for asked in server.asked[1:3]] == ["SendStreamingMessage", "SubscribeToTask"]


async def test_a_message_on_its_way_is_not_sent_again_where_that_is_forbidden(
    owner: Person, add_relay: AddRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remote(drop) as server:
        result = await relayed(owner, await added(add_relay, server.url, resend=False))
    assert "It is not sent again, because the remote agent may have it (resend=no)." in words(result)
    assert [asked.verb for asked in server.asked] == ["GET", "POST"]


@pytest.mark.parametrize("remote_id", ["T" * 1_001, "T\0"], ids=["long", "NUL"])
async def test_an_id_that_cannot_be_stored_is_no_answer(owner: Person, add_relay: AddRelay, remote_id: str) -> None:
    begin = {"task": task("TASK_STATE_WORKING") | {"id": remote_id}}
    async with remote(events(("1", begin))) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert words(result) == "The answer of the remote agent is not A2A, or it is too large."


async def test_events_without_content_are_limited(owner: Person, add_relay: AddRelay, settings: Any) -> None:
    settings.A2A_TASK_EVENTS = 10
    states = ["TASK_STATE_WORKING", "TASK_STATE_SUBMITTED"] * 10
    async with remote(events((None, first("TASK_STATE_WORKING")), *((None, status(one)) for one in states))) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert words(result) == "The remote agent sent more than 10 events without content."


async def test_the_reason_of_a_remote_error_is_shown_only_in_its_form(owner: Person, add_relay: AddRelay) -> None:
    data = [{"reason": SECRET * 1_000}]
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no", "data": data}})
    async with remote(plain(200, body)) as server:
        result = await relayed(owner, await added(add_relay, server.url))
    assert words(result) == "The remote agent refused the message (INVALID_REQUEST): no."


async def test_the_first_remote_task_that_is_stored_stays(transactional_db: None) -> None:
    one = await relayed_tasks.accept("task", "far", "m", "first", "c")
    two = await relayed_tasks.accept("task", "far", "m", "second", "c")
    assert (one.remote_id, two.remote_id) == ("first", "first")
    await in_thread(RelayedTask.objects.filter(pk="task").update, position="5")
    again = await relayed_tasks.accept("task", "far", "next", "first", "c")
    assert (again.message_id, again.position) == ("next", "5")
    moved = await relayed_tasks.accept("task", "far", "last", "other", "c")
    assert (moved.remote_id, moved.position) == ("other", "")
