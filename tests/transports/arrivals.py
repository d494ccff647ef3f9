"""Requests as strangers send them, and a server at which they wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tasks_app.asgi import entrance as module
from tasks_app.asgi.application import Http
from tasks_app.asgi.handler import LeanHandler
from tasks_app.process.server import Server
from tests.transports.websocket.serving import serving

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n"
)


def head(path: str, size: int = 0, *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {size}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def no_round(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Give a server at which every request of a stranger waits."""
    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server:
        yield server
