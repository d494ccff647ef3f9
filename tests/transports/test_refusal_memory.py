"""The memory of requests that wait for their refusal is bounded, with all that came behind them."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tasks_app.process.answering import Early, Whole
from tasks_app.process.asgi_extensions import CONNECTION
from tasks_app.process.connections import MAX_BEHIND, REQUEST
from tasks_app.transports import refusal_memory
from tasks_app.transports.doubts import Doubts
from tasks_app.transports.refusal_memory import Answer, RefusalMemory
from tests.conftest import PATIENCE
from tests.support.wire_server import served
from tests.transports.websocket.serving import eventually


class Connection:
    """A connection, as far as its memory is counted."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.transport = self
        self.is_dropped = False

    def abort(self) -> None:
        self.is_dropped = True


async def hold(requests: RefusalMemory, *sizes: int) -> tuple[list[Connection], list[Answer]]:
    """Have requests of such sizes wait, and return their connections and the futures of their answers."""
    connections, answers = [Connection(size) for size in sizes], list[Answer]()
    for connection in connections:
        answers.append(asyncio.get_running_loop().create_future())
        requests.hold(answers[-1], {"extensions": {CONNECTION: connection}})
    await asyncio.sleep(0)
    return connections, answers


async def test_a_request_counts_until_its_answer_is_there() -> None:
    requests = RefusalMemory()
    _, (first, second) = await hold(requests, 300, 400)
    assert requests.size == 700
    first.set_result((401, [], b""))
    second.cancel()
    await asyncio.sleep(0)
    assert (requests.size, requests.waiting) == (0, {})


async def test_the_largest_request_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_memory, "MOST_BYTES", 1_000)
    requests = RefusalMemory()
    connections, answers = await hold(requests, 200, 500, 100, 250)
    assert [connection.is_dropped for connection in connections] == [False, True, False, False]
    assert [answer.cancelled() for answer in answers] == [False, True, False, False]
    await asyncio.sleep(0)
    assert requests.size == 550


async def test_the_newest_makes_room_if_it_is_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_memory, "MOST_BYTES", 1_000)
    requests = RefusalMemory()
    connections, _ = await hold(requests, *[20] * (2 * refusal_memory.LOOK - 20), 900)
    assert [connection.is_dropped for connection in connections[-2:]] == [False, True]
    assert requests.size == 20 * (2 * refusal_memory.LOOK - 20)


async def test_requests_of_servers_without_our_connections_do_not_count() -> None:
    requests = RefusalMemory()
    requests.hold(asyncio.get_running_loop().create_future(), {})
    await asyncio.sleep(0)
    assert requests.size == 0


class Holding:
    """An application in front of which each credential is doubted."""

    def __init__(self) -> None:
        self.may_go = asyncio.Event()
        self.doubts: Doubts[str] = Doubts(self.examine)

    async def examine(self, group: Any) -> list[bool]:
        await self.may_go.wait()
        return [True for _ in group]

    def refuse_early(self, scope: dict[str, Any]) -> Early | None:
        refusal: Whole = (401, [(b"content-length", b"0")], b"")
        return lambda _: self.doubts.add("wrong", lambda: refusal, scope)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application answers nothing")


@pytest.mark.parametrize("most", [10 * REQUEST, refusal_memory.MOST_BYTES], ids=["too many", "few"])
async def test_requests_that_came_behind_one_that_waits_count(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(refusal_memory, "MOST_BYTES", most)
    monkeypatch.setattr(refusal_memory, "memory", RefusalMemory())
    monkeypatch.setattr("tasks_app.transports.doubts.memory", refusal_memory.memory)
    app = Holding()
    async with served(app) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(10 * b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
        if most == 10 * REQUEST:
            with suppress(ConnectionResetError):
                assert await reader.read() == b"", "the connection is dropped"
        else:
            await eventually(lambda: refusal_memory.memory.size > 0)
            assert refusal_memory.memory.size > 10 * REQUEST > MAX_BEHIND
        app.may_go.set()
        if most > 10 * REQUEST:
            assert (await reader.readline()).startswith(b"HTTP/1.1 401")
        writer.close()
