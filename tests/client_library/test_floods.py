"""Answers that cost much more to read than to send: very many values, and streams that never say anything."""

import asyncio
import gzip
from contextlib import suppress

import orjson
import pytest
from websockets import ConnectionClosed, ServerConnection, serve

from a2a.client import REST, RPC, SOCKET, Client, Timeouts, bodies, errors
from a2a.client.bodies import MOST_VALUES
from a2a.types import Interface
from tests.client_library.faulty import FakeClock, card, events, faulty, plain, rpc, task
from tests.client_library.hostile import HEAD, streaming, written


@pytest.mark.parametrize("streams", [False, True], ids=["an answer", "an event"])
async def test_an_answer_of_very_many_values_is_not_parsed(streams: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":[' + b"[]," * MOST_VALUES + b"[]]}"
    head = f"{HEAD}{'text/event-stream' if streams else 'application/json'}\r\nContent-Encoding: gzip"
    act = written(head, gzip.compress(b"data:" + body + b"\n\n" if streams else body))
    async with faulty(act) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match="more than 500000 JSON values"):
            await (anext(aiter(client.stream("Hi"))) if streams else client.get_task("t"))
    assert len(server.asked) == 1


async def test_a_text_with_very_many_commas_is_one_value() -> None:
    text = ",[{" * MOST_VALUES
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": task(texts=[text])})
    async with faulty(plain(200, body)) as server, rpc(server, FakeClock()) as client:
        assert (await client.get_task("t")).artifacts[0].parts[0].text == text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b": still here\n\n", "more than 10000 bytes without an event"),
        (b"\r\n", "more than 10000 bytes without an event"),
        (b"retry: 1\n\n", "more than 10000 bytes without an event"),
        (b"data:\n\n", "more than 100 events in a row have no data"),
    ],
    ids=["comments", "blank lines", "retries", "empty events"],
)
async def test_a_stream_that_never_says_anything_is_given_up(
    line: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_QUIET", 10_000)
    monkeypatch.setattr(bodies, "MOST_USELESS", 100)
    act = written(f"{HEAD}text/event-stream", line * 10_000)
    async with faulty(act) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match=why):
            await anext(aiter(client.stream("Hi")))
    assert len(server.asked) == 1


async def test_comments_between_events_end_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_QUIET", 10_000)
    comments, data = (
        b": still here\n\n" * 500,
        orjson.dumps({"jsonrpc": "2.0", "result": {"task": task("TASK_STATE_WORKING")}}),
    )
    large = orjson.dumps({"jsonrpc": "2.0", "result": {"task": task(texts=["x" * 400_000])}})
    body = (comments + b"data: " + data + b"\n\n") * 3 + comments + b"data: " + large + b"\n\n"
    async with streaming(written(f"{HEAD}text/event-stream", body)) as (updates, _, _):
        assert "".join(update.text for update in updates) == "x" * 400_000


@pytest.mark.parametrize("binding", [RPC, REST, SOCKET, "OTHER"])
async def test_an_error_about_a_large_card_is_short(binding: str) -> None:
    interfaces = [(binding, "1.0", "http://" + "x" * 100_000)] * 20
    act = plain(200, orjson.dumps(card(*interfaces, name="n" * 100_000)))
    async with faulty(act) as server, Client(server.url) as client:
        with pytest.raises(errors.ClientError) as caught:
            await client.get_task("t")
    assert len(str(caught.value)) < 3_000


@pytest.mark.parametrize("noise", [None, b'{"jsonrpc":"2.0","method":"note"}'], ids=["pings", "notifications"])
async def test_a_socket_without_events_is_left_in_time(noise: bytes | None) -> None:
    connections = 0

    async def serve_pings(connection: ServerConnection) -> None:
        nonlocal connections
        connections += 1
        wire = orjson.loads(await connection.recv())
        event = {"task": task("TASK_STATE_WORKING" if connections == 1 else "TASK_STATE_COMPLETED")}
        frame = {"jsonrpc": "2.0", "id": wire["id"], "result": event, "sequence": connections}
        await connection.send(orjson.dumps(frame).decode())
        while True:
            await (connection.send(noise.decode()) if noise else connection.ping())
            await asyncio.sleep(0.01)

    async with serve(serve_pings, "127.0.0.1", 0) as listener:
        url = f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/"
        interface, limits = Interface(url=url, binding=SOCKET, version="1.0"), Timeouts(silence=0.5)
        async with Client("", interface=interface, timeouts=limits, clock=FakeClock().clock) as client:
            async with asyncio.timeout(20):
                assert [update.id async for update in client.stream("Hi")] == ["1", "2"]


async def test_a_flood_of_answers_to_no_call_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_USELESS", 100)
    is_closed = asyncio.Event()

    async def flood(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            await connection.recv()
            while True:
                await connection.send('{"jsonrpc":"2.0","id":77,"result":{}}')
        is_closed.set()

    async with serve(flood, "127.0.0.1", 0) as listener:
        url = f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/"
        interface = Interface(url=url, binding=SOCKET, version="1.0")
        async with Client("", interface=interface, clock=FakeClock().clock) as client:
            with pytest.raises(errors.InvalidResponse, match="more than 100 frames"):
                await client.get_task("t")
            await asyncio.wait_for(is_closed.wait(), 20)


async def test_calls_of_a_client_that_is_closed_open_no_connection() -> None:
    opened, is_asked = [], asyncio.Event()

    async def silent(connection: ServerConnection) -> None:
        opened.append(connection)
        async for _ in connection:
            is_asked.set()

    async with serve(silent, "127.0.0.1", 0) as listener:
        url = f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/"
        client = Client("", interface=Interface(url=url, binding=SOCKET, version="1.0"), clock=FakeClock().clock)
        call = asyncio.create_task(client.get_task("t"))
        await is_asked.wait()
        await client.close()
        with pytest.raises(errors.InvalidCall, match="is closed"):
            await call
        with pytest.raises(errors.InvalidCall, match="is closed"):
            await anext(aiter(client.stream("Hi")))
    assert len(opened) == 1


@pytest.mark.parametrize("ids", [True, False])
async def test_a_flood_of_events_that_are_known_ends_the_stream(ids: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_USELESS", 5)
    begin = {"task": task("TASK_STATE_WORKING", ["a"])}
    flood = [("1" if ids else None, begin), *[("2" if ids else None, begin)] * 9]
    async with faulty(events(*flood)) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match="bring nothing new"):
            [update async for update in client.stream("Hi")]
    assert len(server.asked) == 1


async def test_a_socket_that_is_not_read_takes_few_large_messages() -> None:
    """The kernel holds some megabytes too, so that three messages for the client alone cannot be told exactly."""
    sent, stalls = 0, asyncio.Event()
    large = {"task": task("TASK_STATE_WORKING", texts=["x" * 4_000_000])}

    async def flood(connection: ServerConnection) -> None:
        nonlocal sent
        wire = orjson.loads(await connection.recv())
        with suppress(TimeoutError, ConnectionClosed):
            for sent in range(30):
                frame = {"jsonrpc": "2.0", "id": wire["id"], "result": large, "sequence": sent + 1}
                async with asyncio.timeout(3):
                    await connection.send(orjson.dumps(frame).decode())
        stalls.set()
        connection.transport.abort()

    async with serve(flood, "127.0.0.1", 0, compression=None) as listener:
        url = f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/"
        interface = Interface(url=url, binding=SOCKET, version="1.0")
        async with Client("", interface=interface, clock=FakeClock().clock) as client, client.stream("Hi") as updates:
            await anext(aiter(updates))
            await asyncio.wait_for(stalls.wait(), 60)
    assert 1 < sent < 12
