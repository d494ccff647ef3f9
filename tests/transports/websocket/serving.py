"""A server with the WebSocket door in the loop of a test, whose settings the test may change."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.db import connections
from websockets import ClientConnection

from tasks_app.asgi.application import Application, Sockets
from tasks_app.process.server import Server, config_of
from tasks_app.transports.websocket import WebSocket
from tests.conftest import PATIENCE, Person
from tests.transports.websocket.door import bearer, dialled

DOORS = {"websocket": Sockets(WebSocket.as_asgi())}


async def eventually(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.02)


async def in_a_thread(function: Callable[[], Any]) -> Any:
    """Call a function that uses the database, and close the connection of its thread."""

    def call() -> Any:
        try:
            return function()
        finally:
            connections.close_all()

    return await asyncio.to_thread(call)


@asynccontextmanager
async def serving(doors: dict[str, Any] = DOORS) -> AsyncIterator[Server]:
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


def url(server: Server) -> str:
    return f"http://127.0.0.1:{port(server)}"


@asynccontextmanager
async def connected(owner: Person, path: str = "/ws", **more: Any) -> AsyncIterator[tuple[ClientConnection, Server]]:
    """Yield a connection with the key of the person, and its server."""
    async with serving() as server, dialled(url(server), path, **(bearer(owner.key) | more)) as client:
        yield client, server
