"""A door for WebSocket, in one file and a row: many calls at once on one connection of our server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from io import BytesIO
from typing import Any

import orjson
import pytest
from django.core.handlers.asgi import ASGIRequest
from msgspec.structs import replace
from websockets import ClientConnection, ConnectionClosed, connect

from a2a import languages
from tasks_app.asgi.application import Application
from tasks_app.callers.accounts import account
from tasks_app.exchanges.recording import recorder
from tasks_app.models import Exchange
from tasks_app.process import services
from tasks_app.process.connections import Connection
from tasks_app.process.progress import MIN_PROGRESS, Progress
from tasks_app.process.server import Server, config_of
from tasks_app.transports.call import Call
from tasks_app.transports.http import call_of
from tasks_app.transports.receiving import Batch
from tasks_app.transports.receiving import receive as handle_body
from tests.conftest import PATIENCE, Person
from tests.support.accounts import holdings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

# ------------------------------------------------------------ the server's side


async def socket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve one connection. Its handshake is a request of HTTP, which has the key and the headers of all its calls."""
    await receive()
    await send({"type": "websocket.accept"})
    request = ASGIRequest(scope | {"method": "GET"}, BytesIO())
    agent = scope["path"].split("/")[2]
    call = replace(call_of(request, languages.ALL.endpoints["rpc"], agent), door="socket", has_status=False)
    working = set()
    while (message := await receive())["type"] == "websocket.receive":
        work = asyncio.ensure_future(answer(replace(call), message["text"].encode(), send))
        working.add(work)
        work.add_done_callback(working.discard)
    for work in working:
        work.cancel()
    await asyncio.gather(*working, return_exceptions=True)


async def answer(call: Call, body: bytes, send: Any) -> None:
    async def frame(text: bytes) -> None:
        await send({"type": "websocket.send", "text": text.decode()})

    reply = await handle_body(call, body)
    if isinstance(reply, Batch):
        await frame(await reply.payload())
    elif reply.stream is not None:
        async with aclosing(reply.stream.pages()) as pages:
            async for page in pages:
                for seq, event in page:
                    await frame(b'{"after":%d,"event":%b}' % (seq or 0, event))
        await frame(orjson.dumps({"end": reply.stream.end.name, "id": reply.wrapping.id}))
    else:
        payload = await reply.late.payload(early=False) if reply.late else reply.payload
        await frame(payload or b"null")
    reply.release()


async def eventually(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serving(doors: dict[str, Any]) -> AsyncIterator[Server]:
    config = config_of(Application(doors))
    config.port, config.lifespan = 0, "off"
    server = Server(config)
    work = asyncio.ensure_future(server.serve())
    try:
        await eventually(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        await work


def port(server: Server) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


@asynccontextmanager
async def connected(owner: Person) -> AsyncIterator[tuple[ClientConnection, Server]]:
    headers = {"Authorization": f"Bearer {owner.key}", "A2A-Version": "1.0"}
    async with asyncio.timeout(PATIENCE), serving({"websocket": socket}) as server:
        address = f"ws://127.0.0.1:{port(server)}/agents/asks-credentials/ws"
        async with connect(address, additional_headers=headers, proxy=None) as client:
            yield client, server


# ------------------------------------------------------------ the client's side


def sending(rpc_id: str, method: str = "SendMessage") -> str:
    message = {"messageId": rpc_id, "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    wire = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": {"message": message}}
    return orjson.dumps(wire).decode()


async def until_the_end(client: ClientConnection) -> AsyncIterator[Any]:
    with suppress(ConnectionClosed):
        while True:
            yield await client.recv()


async def next_frame(client: ClientConnection) -> Any:
    return orjson.loads(await client.recv())


def test_calls_and_streams_share_one_socket(owner: Person) -> None:
    async def story() -> None:
        async with connected(owner) as (client, _):
            await client.send(sending("stream", "SendStreamingMessage"))
            assert (await next_frame(client))["event"]["id"] == "stream"
            await client.send(sending("one"))
            await client.send(sending("two"))
            answers: set[str] = set()
            while answers != {"one", "two"}:
                frame = await next_frame(client)
                answers |= {frame["id"]} if "id" in frame else set()

    asyncio.run(story())
    assert recorder.drain(PATIENCE)
    rows = Exchange.objects.all()
    assert {row.door for row in rows} == {"socket"}
    assert {row.http_status for row in rows} == {None}
    assert sorted(row.outcome for row in rows) == ["result", "result", "stream"]


async def test_a_stream_ends_with_its_socket(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await client.send(sending("s", "SendStreamingMessage"))
        await client.recv()
        assert any(kind == "streams" for kind, _, _ in holdings(account))
        await client.close()
        await eventually(lambda: not holdings(account))


async def test_a_stream_tells_its_end_before_the_server_stops(owner: Person) -> None:
    frames: list[Any] = []
    async with connected(owner) as (client, server):
        await client.send(sending("s", "SendStreamingMessage"))
        frames.append(await next_frame(client))
        services.drain()
        for connection in [*server.server_state.connections]:
            connection.shutdown()  # as the server does at once, or a little later
        frames += [orjson.loads(text) async for text in until_the_end(client)]
    assert frames[-1] == {"end": "DRAINING", "id": "s"}
    assert client.close_code == 1012


async def test_a_message_that_is_too_large_ends_the_socket(owner: Person, settings: Any) -> None:
    settings.A2A_BODY_BYTES = 2_000
    async with connected(owner) as (client, _):
        await client.send("x" * 2_001)
        assert [text async for text in until_the_end(client)] == []
    assert client.close_code == 1009


async def test_without_a_door_an_upgrade_is_ignored() -> None:
    """The request is answered as one of HTTP (RFC 9110, 7.8)."""

    async def http(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 405, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async with serving({"http": http}) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n"
        writer.write(f"GET /ws HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 405")
        writer.close()
        await writer.wait_closed()


async def test_an_upgrade_behind_an_open_answer_ends_the_connection() -> None:
    """The answer would be written into the socket."""
    gate = asyncio.Event()

    async def http(scope: Any, receive: Any, send: Any) -> None:
        await gate.wait()

    async with serving({"http": http, "websocket": socket}) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n"
        plain = "GET / HTTP/1.1\r\nHost: x\r\n"
        writer.write(f"{plain}\r\n{plain}{upgrade}\r\n".encode())
        assert await reader.read() == b""
        gate.set()
        writer.close()


async def test_an_upgraded_connection_keeps_no_timer(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[Connection] = []
    release = Connection._release
    monkeypatch.setattr(Connection, "_release", lambda self: (freed.append(self), release(self))[1])
    async with connected(owner):
        (connection,) = freed
        assert connection.timer is not None
        assert connection.timer.cancelled()


class Pipe:
    """A transport with so many bytes left to write."""

    def __init__(self, left: int) -> None:
        self.left = left

    def get_write_buffer_size(self) -> int:
        return self.left

    def is_closing(self) -> bool:
        return False


def test_a_reader_must_take_some_bytes_in_time(settings: Any) -> None:
    settings.A2A_WRITE_SECONDS = 10.0
    pipe = Pipe(100_000)
    progress = Progress(pipe)
    assert not progress.is_too_slow(0.0)
    progress.pause(0.0)
    assert not progress.is_too_slow(9.9)
    pipe.left -= MIN_PROGRESS
    assert not progress.is_too_slow(10.0)
    pipe.left -= MIN_PROGRESS - 1
    assert not progress.is_too_slow(19.9)
    assert progress.is_too_slow(20.0)
    progress.resume()
    assert not progress.is_too_slow(90.0)
