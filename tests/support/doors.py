"""Doors of the story: they carry the bytes of a call, and know no language."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import NamedTuple, Protocol

import httpx
from django.test import AsyncClient

from tests.conftest import NO_TLS, PATIENCE


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


Events = AsyncIterator[tuple[int | None, bytes]]
"""The events of a stream: sequence number and data."""


class Door(Protocol):
    """A way in."""

    announces_ends: bool
    """Its client learns when a notification is done."""

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> AbstractAsyncContextManager[Reply]: ...

    def events(self, reply: Reply) -> Events | None:
        """Return the events of a reply; None if it is no stream."""


class HttpDoor:
    """A door whose streams are server-sent events."""

    announces_ends = True

    def events(self, reply: Reply) -> Events | None:
        if reply.headers["content-type"] != "text/event-stream":
            return None
        assert reply.headers["x-accel-buffering"] == "no"
        return sent_events(reply.chunks)


async def sent_events(chunks: AsyncIterator[bytes]) -> Events:
    waiting = b""
    async for chunk in chunks:
        waiting += chunk
        *whole, waiting = waiting.split(b"\n\n")
        for event in whole:
            lines = dict(line.split(b": ", 1) for line in event.split(b"\n") if not line.startswith(b":"))
            yield (int(lines[b"id"]) if b"id" in lines else None), lines[b"data"]


class LiveDoor(HttpDoor):
    """A real server: uvicorn and the lean handler."""

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        async with (
            httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, verify=NO_TLS) as client,
            client.stream(method, path, content=body, headers=headers) as response,
        ):
            yield Reply(response.status_code, dict(response.headers), response.aiter_bytes())


class StockDoor(HttpDoor):
    """Django's own handler, in this process."""

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        kind = headers.get("Content-Type", "application/octet-stream")
        rest = {name: value for name, value in headers.items() if name != "Content-Type"}
        client = AsyncClient()
        response = await client.generic(method, path, data=body, content_type=kind, headers=rest)
        told = {name.lower(): value for name, value in response.items()}
        if not response.streaming:
            yield Reply(response.status_code, told, once(response.content))
            return
        # Django's generator around ours does not close it: that would wait for the garbage collector.
        async with aclosing(response.streaming_content) as chunks, aclosing(response._iterator):
            yield Reply(response.status_code, told, chunks)


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content
