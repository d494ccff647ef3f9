"""Messages that are larger than a server takes: they are uploaded once, and their errors name the limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from websockets import ServerConnection, ServerProtocol, serve

from a2a.client import RPC, SOCKET, Client, ClientError, errors
from a2a.client.http import LARGE
from a2a.types import Interface, Task
from tests.client_library.faulty import FakeClock, Json, drop, faulty, listening, plain, result, rpc, task

HUGE = "x" * (2 * LARGE)
LIMIT = 300_000
"""The bytes of a frame that the server of these tests takes over WebSocket."""


@asynccontextmanager
async def cutting() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Run a server that reads the head of each request, and cuts its connection. Give its address, and the heads."""
    heads: list[bytes] = []

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        await _cut_within(reader, writer)

    async with listening(cut) as port:
        yield f"http://127.0.0.1:{port}", heads


async def _cut_within(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Cut a connection once more arrives. The part of it that is not read makes the end a reset."""
    await reader.readexactly(1)
    writer.transport.abort()


def client_of(url: str, binding: str, fake: FakeClock) -> Client:
    return Client(url, interface=Interface(url=url, binding=binding, version="1.0"), clock=fake.clock)


async def error_of(client: Client, text: str, *, streams: bool) -> ClientError:
    """Return the error of a message, which is sent or streamed."""
    call = anext(aiter(client.stream(text))) if streams else client.send(text)
    with pytest.raises(ClientError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("streams", [False, True])
async def test_a_large_message_whose_connection_is_cut_is_sent_once(streams: bool) -> None:
    fake = FakeClock()
    async with cutting() as (url, heads), client_of(url, RPC, fake) as client:
        error = await error_of(client, HUGE, streams=streams)
    assert isinstance(error, errors.LargeMessageLost)
    assert (len(heads), fake.pauses, error.retryable, error.attempts) == (1, [], False, 1)
    size = next(line.split(b": ")[1].decode() for line in heads[0].split(b"\r\n") if line.startswith(b"Content-Length"))
    assert f"the message of {size} bytes may be larger than the server takes (A2A_BODY_BYTES there)" in str(error)


async def test_a_small_message_whose_connection_is_cut_is_sent_again() -> None:
    fake = FakeClock()
    async with cutting() as (url, heads), client_of(url, RPC, fake) as client:
        error = await error_of(client, "x" * (LARGE // 2), streams=False)
    assert type(error) is errors.ConnectionLost
    assert (len(heads), error.attempts) == (4, 4)


async def test_a_large_message_is_sent_again_after_an_orderly_end() -> None:
    fake = FakeClock()
    async with faulty(drop, result({"task": task()})) as server, rpc(server, fake) as client:
        assert isinstance(await client.send(HUGE), Task)
    assert len(server.asked) == 2


async def test_a_refusal_with_413_names_the_setting_of_the_limit() -> None:
    async with faulty(plain(413)) as server, rpc(server, FakeClock()) as client:
        error = await error_of(client, HUGE, streams=False)
    assert isinstance(error, errors.InvalidRequest)
    assert "A2A_BODY_BYTES" in str(error)
    assert len(server.asked) == 1


# ------------------------------------------------------------------ WebSocket


@asynccontextmanager
async def socket(answers: int = 1) -> AsyncIterator[tuple[str, list[Json]]]:
    """Run a server that answers its frames once it has so many, and refuses large ones. Give its address, and the
    frames; null stands for a connection."""
    frames: list[Any] = []

    async def handle(connection: ServerConnection) -> None:
        frames.append(None)
        unanswered = []
        async for frame in connection:
            frames.append(orjson.loads(frame))
            unanswered.append(frames[-1])
            if len(unanswered) >= answers:
                for wire in unanswered:
                    await connection.send(orjson.dumps({"jsonrpc": "2.0", "id": wire["id"], "result": task()}).decode())

    async with serve(handle, "127.0.0.1", 0, max_size=LIMIT) as listener:
        yield f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/ws", frames


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("text", ["x" * (LIMIT + 1), HUGE])
async def test_a_frame_that_is_too_large_is_sent_once(text: str, streams: bool) -> None:
    fake = FakeClock()
    async with socket() as (url, frames), client_of(url, SOCKET, fake) as client:
        error = await error_of(client, text, streams=streams)
    assert isinstance(error, errors.InvalidRequest)
    assert (frames, fake.pauses) == ([None], [])
    assert "the server refused a message of " in str(error)
    assert "1009 (message too big)" in str(error)
    assert "A2A_BODY_BYTES" in str(error)


async def test_calls_beside_a_frame_that_is_too_large_are_made_again() -> None:
    async with socket(answers=2) as (url, frames), client_of(url, SOCKET, FakeClock()) as client:
        outcomes = await asyncio.gather(
            client.get_task("t"), client.send("x" * (LIMIT + 1)), client.get_task("t"), return_exceptions=True
        )
    first, refused, last = outcomes
    assert isinstance(first, Task)
    assert isinstance(last, Task)
    assert isinstance(refused, errors.InvalidRequest)
    assert frames.count(None) == 2  # type: ignore[arg-type]


async def test_a_large_frame_whose_connection_is_cut_is_sent_once() -> None:
    opened = []

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(reader)
        protocol = ServerProtocol()
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
        (request,) = protocol.events_received()
        protocol.send_response(protocol.accept(request))  # type: ignore[arg-type]
        writer.writelines(protocol.data_to_send())
        await _cut_within(reader, writer)

    async with listening(cut) as port, client_of(f"ws://127.0.0.1:{port}/ws", SOCKET, FakeClock()) as client:
        error = await error_of(client, HUGE, streams=False)
    assert isinstance(error, errors.LargeMessageLost)
    assert len(opened) == 1
