"""Requests of strangers that wait to begin at a server: which do, what they take, and when they leave."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import httpx
import pytest
import uvloop

from a2a.errors import InvalidKey
from tasks_app.asgi import entrance as module
from tasks_app.asgi import handler
from tasks_app.asgi.application import Http, Sockets
from tasks_app.asgi.handler import LeanHandler
from tasks_app.callers.key_form import random_key
from tasks_app.process.connections import MAX_BEHIND, MAX_PIPELINE, REQUEST, Connection
from tasks_app.process.displacing import waiting
from tasks_app.process.head_limits import MAX_FIELDS
from tasks_app.process.server import ACCEPTS
from tasks_app.transports.call import SMALL
from tests.conftest import Person
from tests.transports.arrivals import HANDSHAKE, head, no_round
from tests.transports.calls import call
from tests.transports.websocket.serving import eventually, port, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


@pytest.mark.parametrize(
    ("path", "size", "fields"),
    [
        ("/jsonrpc", 100, ()),
        ("/jsonrpc", SMALL + 1, ("X-API-Key: tdk_a-wrong-key",)),
        ("/jsonrpc", SMALL + 1, ()),
        ("/slack/nothing", SMALL + 1, ()),
    ],
    ids=["small", "large with a wrong key", "large without a key", "large and signed"],
)
@pytest.mark.parametrize("pause", [0, 0.1], ids=["at once", "in two parts"])
async def test_every_request_of_a_stranger_waits(
    monkeypatch: pytest.MonkeyPatch, path: str, size: int, fields: tuple[str, ...], pause: float
) -> None:
    async with no_round(monkeypatch) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head(path, size, *fields))
        await asyncio.sleep(pause)
        writer.write(b"x" * size)
        line = await _line_with(1)
        writer.close()
        await eventually(lambda: module.entrance._begin_round_soon(line) or not line.waiting)


@pytest.mark.parametrize("size", [100, SMALL + 1])
async def test_a_credential_is_looked_up_behind_the_wait(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    looks: list[Any] = []

    async def look_up(*evidence: Any) -> None:
        looks.append(evidence)
        raise InvalidKey

    monkeypatch.setattr(handler, "authenticate", look_up)
    async with no_round(monkeypatch) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head("/jsonrpc", 2 * size, f"X-API-Key: {random_key()}") + b"x" * size)
        line = await _line_with(1)
        assert (looks, line.size > size) == ([], True), "the bytes that have arrived count"
        writer.write(b"x" * size)
        await asyncio.sleep(0.1)
        (connection,) = (one for one in Connection.of_process if isinstance(one, Connection))
        assert connection.current is not None
        assert len(connection.current.body) <= size, "what waits takes no further memory"
        module.entrance._begin_round_soon(line)
        await eventually(lambda: len(looks) > 0)
        for _ in range(2):
            module.entrance._begin_round_soon(line)
            await asyncio.sleep(0.1)
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        writer.close()


async def test_the_wait_takes_no_time_of_the_body(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.A2A_BODY_SECONDS = 0.2
    async with no_round(monkeypatch) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head("/jsonrpc", SMALL + 1, "X-API-Key: tdk_a-wrong-key"))
        line = await _line_with(1)
        await asyncio.sleep(0.5)
        writer.write(b"x" * (SMALL + 1))
        module.entrance._begin_round_soon(line)
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        writer.close()


async def test_a_handshake_that_waits_at_the_end_is_asked_to_come_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(HANDSHAKE)
        await _line_with(1, "handshakes")
        server.should_exit = True
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1\r\n" in answer
        writer.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_client_that_closes_its_half_while_it_waits_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer of before that it has not read keeps the connection, though it is closing."""
    lean = LeanHandler()

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4000000")]})
        await send({"type": "http.response.body", "body": b"x" * 4_000_000})

    async def door(scope: Any, receive: Any, send: Any) -> None:
        await (large if scope["path"] == "/large" else lean)(scope, receive, send)

    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving({"http": door}) as server:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", port(server)))
            await loop.sock_sendall(client, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n" + head("/jsonrpc", 2) + b"{}")
            line = await _line_with(1)
            (connection,) = (one for one in Connection.of_process if isinstance(one, Connection))
            assert connection.transport.get_write_buffer_size()
            client.shutdown(socket.SHUT_WR)
            await eventually(connection.transport.is_closing)
            await eventually(lambda: module.entrance._begin_round_soon(line) or not line.waiting)
            await asyncio.sleep(0.1)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_requests_behind_one_that_waits_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async with no_round(monkeypatch) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(40 * head("/jsonrpc"))
        line = await _line_with(1)
        assert line.size > 40 * REQUEST
        writer.write(MAX_BEHIND * b"x" + b"x")
        await eventually(lambda: not line.waiting)
        assert not server.server_state.connections, "it is closed, because more would wait behind it"
        writer.close()


async def test_pipelined_requests_that_take_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = ["a:b"] * (MAX_FIELDS - 8)
    async with no_round(monkeypatch) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(MAX_PIPELINE * head("/jsonrpc", 0, *fields))
        assert await reader.read() == b"", "the connection is closed"
        assert not module.entrance.lines["calls"].waiting
        writer.close()


def test_connections_that_come_together_are_accepted_together() -> None:
    """libuv accepts one in a round of the loop, and a hundred strangers would keep others out for a hundred rounds."""
    number = 4 * ACCEPTS

    async def rounds() -> int:
        count, clients = 0, [socket.socket() for _ in range(number)]
        async with serving({"http": LeanHandler()}) as server:
            for client in clients:
                client.connect(("127.0.0.1", port(server)))
            while len(server.server_state.connections) < number:
                await asyncio.sleep(0)
                count += 1
            for client in clients:
                client.close()
        return count

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(rounds()) < number / 2


async def test_a_connection_that_is_closed_is_not_logged_as_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(b"GET /jsonrpc HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


async def test_a_client_that_leaves_the_line_takes_its_request_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Entrance, "_begin_round", lambda *_: None)
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        for _ in range(module.LINES["calls"] + 1):
            writer.write(b"GET /jsonrpc HTTP/1.1\r\nHost: x\r\n\r\n")
        line = await _line_with(1)
        assert len(waiting) == 1, "a new connection may replace it"
        writer.close()
        await eventually(lambda: not line.waiting)
        monkeypatch.undo()
        module.entrance._begin_anew(None)


async def _line_with(number: int, kind: str = "calls") -> module.Line:
    await eventually(lambda: len(module.entrance.lines[kind].waiting) == number)
    return module.entrance.lines[kind]


async def test_a_client_that_leaves_takes_its_handshake_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    doors: list[Any] = []

    async def door(scope: Any, receive: Any, send: Any) -> None:
        doors.append(scope)

    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving({"websocket": Sockets(door)}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(HANDSHAKE)
        line = await _line_with(1, "handshakes")
        assert len(waiting) == 1, "a new connection may replace it"
        writer.close()
        await eventually(lambda: not line.waiting)
    assert doors == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_connection_is_known_after_a_call_with_a_valid_credential_alone(owner: Person) -> None:
    good = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    get = call("GetTask", {"id": "none"})
    acts: list[tuple[dict[str, str], str, bytes, bool]] = [
        (good, "POST", get, True),
        (good, "POST", b"no JSON", False),
        (good, "POST", get, True),
        (good | {"Content-Type": "text/plain"}, "POST", get, False),
        (good, "POST", b"[" + get + b"]", True),
        (good, "PUT", get, False),
        (good, "POST", get, True),
        (good, "POST", b"x" * (SMALL + 1), False),
        (good | {"Authorization": "Bearer wrong"}, "POST", get, False),
    ]
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server, httpx.AsyncClient(base_url=url(server)) as client:
        for headers, verb, body, is_known in acts:
            await client.request(verb, "/jsonrpc", content=body, headers=headers)
            (connection,) = (one for one in Connection.of_process if isinstance(one, Connection))
            assert connection.is_known is is_known, (verb, body, headers)
