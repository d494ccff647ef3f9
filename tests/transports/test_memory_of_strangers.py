"""The memory of requests of strangers: what those that wait take, and when that of a handshake is free again."""

import asyncio
import gc
import tracemalloc
from contextlib import suppress

import pytest

from tasks_app.asgi import entrance as module
from tasks_app.process.connections import Connection
from tasks_app.process.sockets import Socket
from tests.transports.arrivals import HANDSHAKE, head, no_round
from tests.transports.websocket.serving import eventually, port, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]
FIELDS = [f"X-{place:03}: {'x' * 150}" for place in range(100)]
BASE = 20_000
"""Bytes that a connection may take with both of its ends, whatever its request is."""
NUMBER = 20


def _waiting(kind: str) -> int:
    return sum(map(len, module.entrance.lines[kind].waiting.values()))


@pytest.mark.parametrize("kind", ["calls", "handshakes"])
async def test_requests_that_wait_take_no_more_memory_than_they_count(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    request = head("/jsonrpc", 2, *FIELDS) + b"{}"
    if kind == "handshakes":
        request = HANDSHAKE[:-2] + "\r\n".join([*FIELDS, "", ""]).encode()
        monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving() if kind == "handshakes" else no_round(monkeypatch) as server:
        writers = list[asyncio.StreamWriter]()

        async def send(number: int) -> None:
            for _ in range(number):
                writers.append((await asyncio.open_connection("127.0.0.1", port(server)))[1])
                writers[-1].write(request)
            await eventually(lambda: _waiting(kind) == len(writers))

        await send(1)  # What is made once is there now.
        gc.collect()
        tracemalloc.start()
        try:
            await send(NUMBER)
            gc.collect()
            memory, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        size = module.entrance.lines[kind].size / len(writers)
        assert memory / NUMBER < 1.1 * size + BASE
        for writer in writers:
            writer.close()
        await eventually(lambda: module.entrance._begin_round_soon(module.entrance.lines[kind]) or not _waiting(kind))


@pytest.mark.parametrize("end", ["dropped", "refused", "not understood"])
async def test_a_handshake_leaves_nothing_for_the_garbage_collector(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Python looks for cycles now and then. Until then the heads of strangers would take hundreds of megabytes."""
    request = HANDSHAKE.replace(b"Version: 13", b"Version: 1") if end == "not understood" else HANDSHAKE
    if end == "dropped":
        monkeypatch.setattr(module, "MOST_BYTES", 0)
        monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving() as server:
        gc.collect()
        gc.disable()
        try:
            for _ in range(NUMBER):
                reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
                writer.write(request)
                with suppress(ConnectionResetError):
                    await reader.read()
                writer.close()
            await eventually(lambda: not server.server_state.connections)
            await asyncio.sleep(0.1)
            rest = [one for one in gc.get_objects() if type(one) in {Socket, Connection}]
        finally:
            gc.enable()
        assert len(rest) < NUMBER / 2
