"""An application of ASGI behind our connections, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from tasks_app.process.connections import Connection
from tests.conftest import PATIENCE


class Served:
    """A port that answers, and the connections to it."""

    def __init__(self, port: int, state: ServerState) -> None:
        self.port = port
        self.state = state

    async def ask(self, *heads: str) -> bytes:
        """Send requests at once, the last of which ends the connection, and return all that is answered."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write("".join(f"{head}\r\nHost: x\r\n\r\n" for head in heads).encode())
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[Served]:
    """Serve the application for the length of the block."""
    config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", server_header=False, log_config=None)
    config.load()
    config.loaded_app = app  # Without the middleware of uvicorn, which hides the attributes of the application.
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        yield Served(server.sockets[0].getsockname()[1], state)
