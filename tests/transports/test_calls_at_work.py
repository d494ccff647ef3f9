"""Calls of one owner that are worked on at the same time: further ones wait, and hold up no other owner."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from websockets import ConnectionClosedError

from a2a.agents import agent
from a2a.requests import GetTask
from a2a.run import Run
from tasks_app.asgi.handler import LeanHandler
from tasks_app.callers.access import revoke
from tasks_app.database.work import DoSlowly
from tasks_app.descriptions import pages
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.turns import turns
from tasks_app.models import ApiKey, Exchange
from tasks_app.operations import dispatcher
from tasks_app.operations.operation import Await, Done
from tasks_app.runner import quick
from tasks_app.transports import keys, receiving
from tasks_app.transports.frames import END
from tasks_app.transports.receiving import LIGHT
from tests.conftest import PATIENCE, Person
from tests.support.agents import MEMORY
from tests.support.lanes import Read
from tests.transports.websocket.door import bearer, call, dialled, message, next_frame
from tests.transports.websocket.serving import DOORS, eventually, in_a_thread, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
BOTH = {"http": LeanHandler(), **DOORS}
GET = call(1, "GetTask", {"id": "none"})
LONG = call(1, "GetTask", {"id": "n" * 2 * LIGHT})


async def wait_for_a_word(run: Run) -> str:
    """Waits until it is let go."""
    MEMORY["begun"].set()
    await asyncio.to_thread(MEMORY["word"].wait, PATIENCE)
    return "done"


agent(name="waits-for-a-word")(wait_for_a_word)
agent(name="waits-quickly", quick=True)(wait_for_a_word)


@pytest.fixture(autouse=True)
def one_at_a_time(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_OWNER_CALLS = 1
    monkeypatch.setattr(quick, "LIMIT", PATIENCE)
    MEMORY["begun"], MEMORY["word"] = threading.Event(), threading.Event()


def client(base: str, person: Person) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {person.key}", "A2A-Version": "1.0", "Content-Type": "application/json"}
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=PATIENCE)


def send(agent: str, text: str = "hello") -> str:
    return call(2, "SendMessage", {"message": message(text), "metadata": {"agent": agent}})


def line_of(owner: Person) -> int:
    """Return the number of calls that wait for their turn."""
    line = turns.lines.get(owner.caller.owner_id)
    return len(line.places) if line else 0


def code_of(answer: httpx.Response) -> int:
    return int(answer.json()["error"]["code"])


@pytest.mark.parametrize(
    "body",
    [GET, LONG, f"[{GET}, {GET}, {GET}]", f"[{LONG}, {GET}]", "no JSON", LONG[:-1]],
    ids=["call", "long call", "batch", "long batch", "unreadable", "long and unreadable"],
)
async def test_a_call_waits_for_its_turn_and_the_calls_of_others_do_not(
    owner: Person, colleague: Person, body: str
) -> None:
    async with serving(BOTH) as server, client(url(server), owner) as own, client(url(server), colleague) as other:
        turn = await turns.take(owner.caller.owner_id)
        waiting = asyncio.ensure_future(own.post("/jsonrpc", content=body))
        await eventually(lambda: line_of(owner) > 0)
        assert code_of(await other.post("/jsonrpc", content=GET)) == -32001
        assert not waiting.done()
        turn.end()
        assert b"error" in (await waiting).content
    assert turns.lines == {}


async def test_a_ticket_waits_for_the_turn_of_its_caller(owner: Person, settings: Any) -> None:
    async with serving(BOTH) as server, client(url(server), owner) as own:
        turn = await turns.take(owner.caller.owner_id)
        waiting = asyncio.ensure_future(own.post("/ws/ticket"))
        await eventually(lambda: line_of(owner) == 1)
        turn.end()
        assert "ticket" in (await waiting).json()
        await eventually(lambda: turns.lines == {})
        turn, settings.A2A_CALL_SECONDS = await turns.take(owner.caller.owner_id), 0.1
        answer = await own.post("/ws/ticket")
        assert (answer.status_code, code_of(answer)) == (503, -38013)
        assert int(answer.headers["retry-after"]) >= 1
        turn.end()


async def test_a_link_whose_reader_has_seen_all_waits_for_the_turn_of_its_owner(owner: Person) -> None:
    async with serving(BOTH) as server, client(url(server), owner) as own:
        task = (await own.post("/jsonrpc", content=send("echo"))).json()["result"]["task"]["id"]
        link = (await own.post("/links", json={"taskId": task})).json()["url"]
        turn = await turns.take(owner.caller.owner_id)
        waiting = asyncio.ensure_future(own.get(f"{link}&afterSequence=99"))
        await eventually(lambda: line_of(owner) == 1)
        turn.end()
        assert (await waiting).status_code == 204
        await eventually(lambda: turns.lines == {})


async def test_a_link_that_gets_no_turn_waits_for_it_once(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, take = list[int](), turns.take
    async with serving(BOTH) as server, client(url(server), owner) as own:
        task = (await own.post("/jsonrpc", content=send("echo"))).json()["result"]["task"]["id"]
        link = (await own.post("/links", json={"taskId": task})).json()["url"]
        await eventually(lambda: turns.lines == {})
        turn, settings.A2A_CALL_SECONDS = await turns.take(owner.caller.owner_id), 0.1
        monkeypatch.setattr(turns, "take", lambda owner_id, *more: waits.append(owner_id) or take(owner_id, *more))
        answer = await own.get(f"{link}&afterSequence=99")
        assert (answer.status_code, len(waits)) == (503, 1)
    turn.end()


async def test_a_page_that_is_slow_to_make_has_no_turn(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end, describe = asyncio.Event(), threading.Event(), pages.describe
    loop = asyncio.get_running_loop()

    def describe_slowly(*arguments: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        end.wait(PATIENCE)
        return describe(*arguments)

    monkeypatch.setattr(pages, "describe", describe_slowly)
    async with serving(BOTH) as server, client(url(server), owner) as own:
        page = asyncio.ensure_future(own.get("/openrpc.json"))
        await begun.wait()
        assert code_of(await own.post("/jsonrpc", content=GET)) == -32001
        end.set()
        assert "openrpc" in (await page).json()
    assert turns.lines == {}


async def test_a_socket_with_a_frame_that_waits_is_not_idle(owner: Person, settings: Any) -> None:
    settings.A2A_SOCKET_IDLE_SECONDS = 0.3
    turn = await turns.take(owner.caller.owner_id)
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as socket:
        await socket.send(GET)
        await eventually(lambda: line_of(owner) == 1)
        await asyncio.sleep(0.6)
        turn.end()
        assert (await next_frame(socket))["error"]["code"] == -32001


async def test_a_long_call_waits_before_it_takes_memory(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = list[bytes](), receiving.parse
    monkeypatch.setattr(receiving, "parse", lambda endpoint, body: parsed.append(body) or parse(endpoint, body))
    async with serving(BOTH) as server, client(url(server), owner) as own:
        await own.post("/jsonrpc", content=GET)
        parsed.clear()
        turn = await turns.take(owner.caller.owner_id)
        waiting = asyncio.ensure_future(own.post("/jsonrpc", content=LONG))
        await eventually(lambda: line_of(owner) > 0)
        assert parsed == []
        turn.end()
        assert code_of(await waiting) == -32001
        assert parsed == [LONG.encode()]


async def test_a_long_call_of_a_revoked_key_counts_as_one_wrong_credential(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    monkeypatch.setattr(keys, "TRUSTED_SECONDS", 0.0)
    monkeypatch.setattr(keys.strangers, "count_failure", failures.append)
    async with serving(BOTH) as server, client(url(server), owner) as own:
        assert code_of(await own.post("/jsonrpc", content=LONG)) == -32001
        assert await in_a_thread(lambda: revoke(ApiKey.objects.all())) == 1
        answer = await own.post("/jsonrpc", content=LONG)
        assert (answer.status_code, code_of(answer), answer.json()["id"]) == (401, -38009, 1)
    assert len(failures) == 1


async def test_a_socket_is_not_read_while_a_frame_of_it_waits(owner: Person, colleague: Person) -> None:
    async with (
        serving() as server,
        dialled(url(server), **bearer(owner.key)) as own,
        dialled(url(server), **bearer(colleague.key)) as other,
    ):
        turn = await turns.take(owner.caller.owner_id)
        for frame in (
            GET,
            "no JSON",
            f"[{GET}, {GET}]",
            json.dumps({"jsonrpc": "2.0", "id": "wish", "method": END, "params": {"id": 1}}),
        ):
            await own.send(frame)
        await other.send(GET)
        assert (await next_frame(other))["error"]["code"] == -32001
        await eventually(lambda: line_of(owner) > 0)
        assert line_of(owner) == 1
        turn.end()
        answers = [await next_frame(own) for _ in range(4)]
        assert Counter(_id_of(answer) for answer in answers) == {1: 2, None: 1, "wish": 1}
        await eventually(lambda: turns.lines == {})


def _id_of(answer: Any) -> Any:
    return answer[0]["id"] if isinstance(answer, list) else answer["id"]


@pytest.mark.parametrize("agent", ["waits-for-a-word", "waits-quickly"])
async def test_a_call_that_waits_for_an_agent_holds_up_no_other(owner: Person, agent: str) -> None:
    async with serving(BOTH) as server, client(url(server), owner) as own:
        waiting = asyncio.ensure_future(own.post("/jsonrpc", content=send(agent)))
        await eventually(MEMORY["begun"].is_set)
        await eventually(lambda: turns.lines == {})
        assert code_of(await own.post("/jsonrpc", content=GET)) == -32001
        assert not waiting.done()
        MEMORY["word"].set()
        assert "error" not in (await waiting).json()
    assert turns.lines == {}


def slowly(word: threading.Event) -> Awaitable[object]:
    return DoSlowly(lambda: word.wait(PATIENCE))


def elsewhere(word: threading.Event) -> Awaitable[object]:
    return Await(lambda: asyncio.to_thread(word.wait, PATIENCE))


def quickly(word: threading.Event) -> Awaitable[object]:
    def wait() -> None:
        word.wait(PATIENCE)

    return Read(wait)


@pytest.mark.parametrize(("step", "waits"), [(slowly, False), (elsewhere, False), (quickly, True)])
async def test_a_call_has_no_turn_during_a_slow_step(
    owner: Person, monkeypatch: pytest.MonkeyPatch, step: Callable[[threading.Event], Awaitable[object]], waits: bool
) -> None:
    begun, end = asyncio.Event(), threading.Event()
    plain = dispatcher.OPERATIONS[GetTask]

    async def first(request: GetTask, context: Any) -> Done:
        begun.set()
        await step(end)
        done: Done = await plain.function(request, context)
        return done

    async with serving(BOTH) as server, client(url(server), owner) as own:
        with monkeypatch.context() as patch:
            patch.setitem(dispatcher.OPERATIONS, GetTask, plain.__class__(first, plain.right))
            calls = [asyncio.ensure_future(own.post("/jsonrpc", content=GET))]
            await begun.wait()
        calls.append(asyncio.ensure_future(own.post("/jsonrpc", content=send("echo"))))
        if waits:
            await eventually(lambda: line_of(owner) == 1)
        else:
            assert "task" in (await calls[1]).json()["result"]
        end.set()
        assert code_of(await calls[0]) == -32001
        assert "task" in (await calls[1]).json()["result"]
    assert turns.lines == {}


async def test_a_call_that_gets_no_turn_in_time_is_refused_in_its_language(owner: Person, settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    turn = await turns.take(owner.caller.owner_id)
    async with serving(BOTH) as server, client(url(server), owner) as own:
        for body in (GET, LONG):
            answer = await own.post("/jsonrpc", content=body)
            assert (answer.status_code, code_of(answer), answer.json()["id"]) == (503, -38013, 1)
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["error"]["data"][0]["reason"] == "UNAVAILABLE"
        assert (await own.post("/jsonrpc", content="no JSON")).json()["error"]["code"] == -32700
        async with dialled(url(server), **bearer(owner.key)) as socket:
            await socket.send(GET)
            assert (await next_frame(socket))["error"]["code"] == -38013
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 3, "method": END, "params": {"id": "none"}}))
            assert (await next_frame(socket))["result"] == {"ended": False}, "a stream can be ended all the same"
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 4, "method": "GetTask"}))
            assert (await next_frame(socket))["id"] == 4
    turn.end()


async def test_frames_that_wait_do_not_hold_up_the_end_of_the_server(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    turn = await turns.take(owner.caller.owner_id)
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as socket:
        for frame in (GET, f"[{GET}, {GET}]", LONG):
            await socket.send(frame)
        await eventually(lambda: line_of(owner) == 1)
        server.should_exit = True
        with pytest.raises(ConnectionClosedError):
            await next_frame(socket)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    turn.end()
    await eventually(lambda: turns.lines == {})


async def test_a_frame_that_gets_no_turn_is_refused_after_a_single_wait(owner: Person, settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 2
    turn = await turns.take(owner.caller.owner_id)
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as socket:
        since = time.monotonic()
        await socket.send(GET)
        assert (await next_frame(socket))["error"]["code"] == -38013
        assert time.monotonic() - since < 2 * settings.A2A_CALL_SECONDS
    turn.end()


@pytest.mark.parametrize(
    ("verb", "path", "content", "record"),
    [
        ("POST", "/jsonrpc", GET, ("error", -38013)),
        ("POST", "/jsonrpc", "no JSON", ("refused", -32700)),
        ("GET", "/openrpc.json", "", ("error", -38013)),
    ],
    ids=["call", "unreadable", "page"],
)
async def test_a_call_without_a_turn_is_recorded_with_its_caller(
    owner: Person, settings: Any, verb: str, path: str, content: str, record: tuple[str, int]
) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    turn = await turns.take(owner.caller.owner_id)
    async with serving(BOTH) as server, client(url(server), owner) as own:
        assert code_of(await own.request(verb, path, content=content)) == record[1]
    assert await in_a_thread(lambda: recorder.drain(PATIENCE))
    row = await in_a_thread(Exchange.objects.get)
    assert (row.caller_id, row.outcome, row.code) == (owner.caller.owner_id, *record)
    turn.end()


async def test_a_client_that_leaves_gives_up_its_place(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.database.waits.WATCH_AFTER", 0.0)
    turn = await turns.take(owner.caller.owner_id)
    async with serving(BOTH) as server:
        async with client(url(server), owner) as own:
            waiting = asyncio.ensure_future(own.post("/jsonrpc", content=GET))
            await eventually(lambda: line_of(owner) == 1)
            waiting.cancel()
        async with dialled(url(server), **bearer(owner.key)) as socket:
            await socket.send(GET)
            await eventually(lambda: line_of(owner) == 2)
        turn.end()
        await eventually(lambda: turns.lines == {})


@pytest.mark.parametrize("body", [GET, LONG, "no JSON"], ids=["call", "long call", "unreadable"])
async def test_a_client_that_leaves_is_recorded_as_the_caller(
    owner: Person, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr("tasks_app.database.waits.WATCH_AFTER", 0.0)
    async with serving(BOTH) as server:
        async with client(url(server), owner) as own:
            await own.post("/jsonrpc", content=GET)
            turn = await turns.take(owner.caller.owner_id)
            waiting = asyncio.ensure_future(own.post("/jsonrpc", content=body))
            await eventually(lambda: line_of(owner) == 1)
            waiting.cancel()
        await eventually(lambda: line_of(owner) == 0)
        turn.end()
    assert await in_a_thread(lambda: recorder.drain(PATIENCE))
    row = await in_a_thread(lambda: Exchange.objects.latest("id"))
    assert (row.caller_id, row.outcome, row.http_status) == (owner.caller.owner_id, "left", None)
