"""Handshakes that are malformed, early, late or given up: each is answered or ends, and holds no connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tasks_app.limits.accounts import account
from tasks_app.process.connections import Connection
from tasks_app.process.displacing import waiting
from tasks_app.process.sockets import EARLY, LATE
from tasks_app.transports import websocket
from tasks_app.transports.handshake import Opening, open_socket
from tests.conftest import PATIENCE, Person, Server
from tests.support.accounts import holdings
from tests.support.sockets import head, received, status, wire
from tests.transports.websocket.serving import DOORS, eventually, port, serving

UPGRADE = ("Connection: Upgrade", "Upgrade: websocket")
KEY, VERSION = "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==", "Sec-WebSocket-Version: 13"
SOCKET = (*UPGRADE, KEY, VERSION)
LINE = "x" * 9_000
"""A line that is longer than the parser of WebSocket takes."""
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def asking(server: Any, *fields: str) -> AsyncIterator[Stream]:
    """Yield a connection on which a handshake was sent."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head("GET /ws HTTP/1.1", *SOCKET, *fields))
        yield reader, writer
        writer.close()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that every handshake waits for, once its head was read."""
    opened = asyncio.Event()

    async def wait(*arguments: Any) -> Opening:
        opening = await open_socket(*arguments)
        await opened.wait()
        return opening

    monkeypatch.setattr(websocket, "open_socket", wait)
    return opened


# ------------------------------------------------------------------- what is malformed


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        ("/ws", (*SOCKET, "Content-Length: 00"), 400),
        (f"/ws?{LINE}", SOCKET, 414),
        ("/ws", (*SOCKET, f"X: {LINE}"), 431),
        ("/ws", (*SOCKET, *["X: y"] * 200), 431),
    ],
    ids=["two zeros", "a long path", "a long field", "many fields"],
)
def test_a_head_that_only_http_takes_is_refused(
    server: Server, path: str, fields: tuple[str, ...], expected: int
) -> None:
    with wire(server) as connection:
        connection.sendall(head(f"GET {path} HTTP/1.1", *fields))
        answer = received(connection)
    assert status(answer) == expected
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((*UPGRADE, KEY, "Sec-WebSocket-Version: 12"), 400),
        ((*UPGRADE, KEY), 400),
        ((*SOCKET, VERSION), 400),
        ((*UPGRADE, VERSION), 400),
        ((*UPGRADE, VERSION, "Sec-WebSocket-Key: %"), 400),
        ((*SOCKET, KEY), 400),
        ((*SOCKET, "Origin: http://a", "Origin: http://b"), 400),
        ((*SOCKET, "Sec-WebSocket-Protocol: ;"), 400),
        ((*SOCKET, "Upgrade: websocket"), 426),
        ((*SOCKET, "Sec-WebSocket-Extensions: ;="), 401),
    ],
    ids=[
        "another version",
        "no version",
        "two versions",
        "no key",
        "a malformed key",
        "two keys",
        "two origins",
        "a malformed sub-protocol",
        "two upgrades",
        "malformed extensions",
    ],
)
def test_a_malformed_handshake_is_refused(server: Server, fields: tuple[str, ...], expected: int) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /ws HTTP/1.1", *fields))
        assert status(received(connection)) == expected


# ------------------------------------------------------------------- what takes too long


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_handshake_without_an_answer_in_time_is_refused(
    owner: Person, gate: asyncio.Event, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.A2A_HEADER_SECONDS = 0.2
    async with serving() as server, asking(server, f"Authorization: Bearer {owner.key}") as (reader, _):
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 1\r\n" in answer
        assert answer.endswith(LATE.encode())
        await eventually(lambda: not server.server_state.connections)
        gate.set()
        await eventually(lambda: not holdings(account))
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_client_that_leaves_during_its_handshake_holds_nothing(
    owner: Person, gate: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as server:
        async with asking(server, f"Authorization: Bearer {owner.key}"):
            await eventually(lambda: any(kind == "sockets" for kind, *_ in holdings(account)))
        await eventually(lambda: not server.server_state.connections)
        gate.set()
        await eventually(lambda: not holdings(account))
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_client_that_sends_frames_before_the_answer_is_refused(owner: Person, gate: asyncio.Event) -> None:
    async with serving() as server, asking(server, f"Authorization: Bearer {owner.key}") as (reader, writer):
        await eventually(lambda: any(kind == "sockets" for kind, *_ in holdings(account)))
        writer.write(b"\x89\x80abcd")
        answer = await reader.read()
        gate.set()
        await eventually(lambda: not holdings(account))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(EARLY.encode())


# ----------------------------------------------------------------- when all are taken


async def answer_everything(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_handshake_without_an_answer_makes_room_for_others(
    owner: Person, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "limit", 2)
    key = f"Authorization: Bearer {owner.key}"
    async with serving({"http": answer_everything, **DOORS}) as server, asking(server, key) as (first, _):
        await eventually(lambda: len(holdings(account)) > 0)
        async with asking(server, key) as (second, _), asyncio.timeout(PATIENCE):
            await eventually(lambda: len(server.server_state.connections) == 2 == len(waiting))
            reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
            writer.write(head("GET / HTTP/1.1", "Connection: close"))
            assert (await reader.read()).startswith(b"HTTP/1.1 204 ")
            writer.close()
            assert await first.read() == b""
            gate.set()
            assert (await second.readline()).startswith(b"HTTP/1.1 101 ")
            await eventually(lambda: not waiting)  # A socket that is open makes no room.


@pytest.mark.usefixtures("service")
async def test_a_handshake_behind_an_unread_answer_ends_the_connection() -> None:
    """Close it, because the socket would not learn that the write buffer is full."""
    written = asyncio.Event()

    async def http(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 20_000_000})
        written.set()

    async with serving({"http": http, **DOORS}) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head("GET / HTTP/1.1"))
        await written.wait()
        writer.write(head("GET /ws HTTP/1.1", *SOCKET))
        answer = await reader.read()
        assert answer.endswith(b"\r\n0\r\n\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        writer.close()
