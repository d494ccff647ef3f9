"""Room for a new connection when all are taken by clients for whom the server waits."""

import asyncio
from typing import Any

import pytest

from tasks_app.process.connections import Connection
from tests.conftest import PATIENCE
from tests.support.sockets import head
from tests.transports.websocket.serving import DOORS, port, serving


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("fields", [(), ("Connection: close",)], ids=["stay open", "close then"])
async def test_clients_who_do_not_read_their_answers_make_room(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[str, ...]
) -> None:
    """Also if the answer is the last one of its connection, which closes when it has been read."""
    monkeypatch.setattr(Connection, "limit", 2)
    written = asyncio.Semaphore(0)

    async def http(scope: Any, receive: Any, send: Any) -> None:
        body = b"x" * (20_000_000 if scope["path"] == "/large" else 1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
        written.release()

    async with serving({"http": http, **DOORS}) as server, asyncio.timeout(PATIENCE):
        writers = []
        for _ in range(2):
            writers.append((await asyncio.open_connection("127.0.0.1", port(server)))[1])
            writers[-1].write(head("GET /large HTTP/1.1", *fields))
            await written.acquire()
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(head("GET / HTTP/1.1", "Connection: close"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        for one in [*writers, writer]:
            one.close()
