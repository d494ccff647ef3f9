"""Our client in shared streams: every operation, cuts that are survived, and no doubled message."""

import asyncio
from typing import Any

import pytest

from a2a.client import ACP, Client, Retries, SyncClient
from a2a.client.errors import (
    ConnectionLost,
    IdempotencyConflict,
    InvalidResponse,
    SharedStreamClosed,
    SharedStreamNotFound,
    StreamLost,
)
from a2a.shared_streams import SharedStreamState
from a2a.types import Interface
from tests.client_library.faulty import FakeClock, Faulty, drop, error, events, faulty, result
from tests.conftest import Server

STREAM = {"streamId": "s", "status": "ACTIVE", "participants": ["me"], "createdAt": "2026-11-23T02:08:20.128Z"}


def client_of(server: Server, token: str) -> Client:
    return Client(server.url, interface=Interface(url=f"{server.url}/jsonrpc", binding=ACP, version="1.0"), token=token)


def test_the_story_of_a_shared_stream(server: Server) -> None:
    async def story() -> None:
        async with client_of(server, server.owner) as client, client_of(server, server.colleague) as colleague:
            stream = await client.start_shared_stream("echo", "colleague", metadata={"topic": "x"})
            assert (stream.state, stream.participants) == (SharedStreamState.ACTIVE, ("developer", "echo", "colleague"))
            assert stream.metadata == {"topic": "x"}
            assert await colleague.send_to_shared_stream(stream.id, "hello") == 1
            seen = []
            async with client.follow_shared_stream(stream.id, after=0) as chunks:
                async for chunk in chunks:
                    seen.append((chunk.seq, chunk.author, chunk.parts[0].text))
                    if chunk.author == "echo" and chunk.is_last:
                        break
                assert chunks.last_id == str(len(seen))
            assert seen[0] == (1, "colleague", "hello")
            assert "".join(text or "" for _, author, text in seen if author == "echo") == "hello"
            places = [await client.send_chunk(stream.id, "piece", 1) for _ in range(2)]
            assert places[0] == places[1] == len(seen) + 1
            with pytest.raises(IdempotencyConflict):
                await client.send_chunk(stream.id, "another piece", 1)
            await client.end_shared_stream(stream.id, pause=True, reason="lunch")
            with pytest.raises(SharedStreamClosed):
                await colleague.send_to_shared_stream(stream.id, "too early")
            assert (await colleague.start_shared_stream(stream_id=stream.id)).state is SharedStreamState.ACTIVE
            await client.end_shared_stream(stream.id, reason="done")
            rest = [chunk.parts[0].text async for chunk in client.follow_shared_stream(stream.id, after=len(seen))]
            assert rest == ["piece", "lunch", "resumed", "done"]
            with pytest.raises(SharedStreamNotFound):
                await client.send_to_shared_stream("missing", "x")

    asyncio.run(story())


def test_a_script_takes_part_without_async(server: Server) -> None:
    interface = Interface(url=f"{server.url}/jsonrpc", binding=ACP, version="1.0")
    with SyncClient(server.url, interface=interface, token=server.owner) as client:
        stream = client.start_shared_stream()
        assert client.send_to_shared_stream(stream.id, "one") == 1
        assert client.send_chunk(stream.id, "two", 1, is_last=True) == 2
        for chunk in client.follow_shared_stream(stream.id, after=1):
            assert chunk.parts[0].text == "two"
            break
        client.end_shared_stream(stream.id)
        assert [chunk.seq for chunk in client.follow_shared_stream(stream.id, after=0)] == [1, 2, 3]


def answer(id: str) -> tuple[str, Any]:
    return id, {"jsonrpc": "2.0", "id": None, "result": {"type": "stream", "stream": STREAM}}


def chunk(seq: int) -> tuple[str, Any]:
    content = {"role": "user", "parts": [{"type": "TextPart", "content": f"n{seq}"}]}
    content |= {"timestamp": "2026-11-23T02:08:20.687Z", "agentId": "me"}
    params = {"streamId": "s", "chunk": content, "sequence": seq, "isLast": True}
    return str(seq), {"jsonrpc": "2.0", "method": "stream.chunk", "params": params}


def in_acp(server: Faulty) -> Client:
    interface = Interface(url=f"{server.url}/jsonrpc", binding=ACP, version="1.0")
    return Client(server.url, interface=interface, clock=FakeClock().clock, retries=Retries())


async def test_an_iterator_goes_on_after_each_cut_and_ends_with_the_stream() -> None:
    script = (
        events(answer("4")),
        events(answer("4"), chunk(5), chunk(6)),
        drop,
        events(answer("6"), chunk(6), chunk(7)),
        error(-40004, "Stream already closed"),
    )
    async with faulty(*script) as server, in_acp(server) as client:
        assert [each.seq async for each in client.follow_shared_stream("s")] == [5, 6, 7]
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "4", "6", "6", "7"]


async def test_an_iterator_gives_up_after_cuts_that_bring_nothing() -> None:
    async with faulty(events(answer("4"))) as server, in_acp(server) as client:
        with pytest.raises(StreamLost):
            await anext(aiter(client.follow_shared_stream("s")))
        assert len(server.asked) == Retries().reconnects + 1


async def test_a_message_is_not_sent_twice_and_a_chunk_is() -> None:
    receipt = result({"type": "notification", "message": "", "streamId": "s", "sequence": 3})
    async with faulty(drop, receipt) as server, in_acp(server) as client:
        with pytest.raises(ConnectionLost):
            await client.send_to_shared_stream("s", "hello")
        assert len(server.asked) == 1
    async with faulty(drop, receipt) as server, in_acp(server) as client:
        assert await client.send_chunk("s", "hello", 1) == 3
        assert len(server.asked) == 2
    async with faulty(drop, error(-40004, "Stream already closed")) as server, in_acp(server) as client:
        await client.end_shared_stream("s")


async def test_an_id_of_the_stream_that_is_no_number_counts_as_none() -> None:
    closed = error(-40004, "Stream already closed")
    async with faulty(events(answer("x"), chunk(1), chunk(2)), closed) as server, in_acp(server) as client:
        assert [piece.seq async for piece in client.follow_shared_stream("s")] == [1, 2]


async def test_a_flood_of_chunks_that_are_known_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2a.client.bodies.MOST_USELESS", 5)
    async with faulty(events(answer("0"), *[chunk(1)] * 9)) as server, in_acp(server) as client:
        with pytest.raises(InvalidResponse, match="bring nothing new"):
            [piece async for piece in client.follow_shared_stream("s")]
