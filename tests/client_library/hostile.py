"""Answers byte by byte, as no library writes them, and a stream that is read to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2a.client import Update
from tests.client_library.faulty import Act, Asked, FakeClock, Faulty, faulty, rpc

HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "


def written(head: str, body: bytes = b"", *, slowly: bool = False) -> Act:
    """Answer with these bytes; or with the last byte of the body again and again, for as long as the client reads."""

    async def act(asked: Asked, writer: Any) -> None:
        writer.write(head.encode() + b"\r\n\r\n" + body)
        await writer.drain()
        while slowly:
            await asyncio.sleep(0.01)
            writer.write(body[-1:])
            await writer.drain()

    return act


@asynccontextmanager
async def streaming(*script: Act, **options: Any) -> AsyncIterator[tuple[list[Update], Faulty, FakeClock]]:
    """Give the updates of a stream to its end."""
    fake = FakeClock()
    async with faulty(*script) as server, rpc(server, fake, **options) as client:
        yield [update async for update in client.stream("Hi")], server, fake
