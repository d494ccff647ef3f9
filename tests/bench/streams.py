"""Streams that open together, as server-sent events or over WebSocket, each followed to the end of its task."""

import asyncio
import base64
import contextlib
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.bench.agents import CHUNKS, chunk
from tests.bench.load import PATIENCE, LoadFailed, Seen, envelope, headers, message, percentile

LOOK_SECONDS = 0.1
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Followed(NamedTuple):
    """When the first event, the first chunk and the last one came, in seconds after the call; or what was wrong."""

    event: float = 0.0
    first: float = 0.0
    last: float = 0.0
    wrong: str = ""


class Burst(NamedTuple):
    """Result of streams that opened together."""

    events: Seen
    first: Seen
    last: Seen


def burst(
    base: str, key: str, agent: str, count: int, *, sockets: bool = False, look: Callable[[], None] = lambda: None
) -> Burst:
    """Open so many streams at the same moment, each on a connection of its own that is open before.

    `look` is called from time to time until all have ended.
    """
    try:
        followed = asyncio.run(_burst(base, key, agent, count, sockets, look))
    except (OSError, EOFError) as error:
        raise LoadFailed(f"{count} streams could not be opened: {error}") from error
    good = [one for one in followed if not one.wrong]
    example = next((one.wrong for one in followed if one.wrong), "")
    return Burst(
        Seen(len(good), count - len(good), example, _spread([one.event for one in good])),
        Seen(0, 0, "", _spread([one.first for one in good])),
        Seen(0, 0, "", _spread([one.last for one in good])),
    )


async def _burst(
    base: str, key: str, agent: str, count: int, sockets: bool, look: Callable[[], None]
) -> list[Followed]:
    where = urlsplit(base)
    opened = await asyncio.gather(*(asyncio.open_connection(where.hostname, where.port) for _ in range(count)))
    looking = asyncio.ensure_future(_look(look))
    try:
        if sockets:
            await asyncio.gather(*(_upgrade(one, where.netloc, key, agent) for one in opened))
        since = time.perf_counter()
        for _, writer in opened:
            body = envelope("SendStreamingMessage", message(str(uuid.uuid4()))).encode()
            writer.write(_frame(body) if sockets else _post(body, where.netloc, key, agent))
        read = _frames if sockets else _lines
        return await asyncio.gather(*(_follow(read(reader), since) for reader, _ in opened))
    finally:
        looking.cancel()
        for _, writer in opened:
            writer.close()


async def _look(look: Callable[[], None]) -> None:
    while True:
        look()
        await asyncio.sleep(LOOK_SECONDS)


def _head(first: str, fields: dict[str, str]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode()


async def _follow(lines: AsyncIterator[bytes], since: float) -> Followed:
    """Read until the task has ended."""
    event = first = last = 0.0
    seen = b""
    with contextlib.suppress(OSError, EOFError):  # too late, or cut
        async with asyncio.timeout(PATIENCE):
            async for line in lines:
                seen = line if line.strip() else seen
                if b'"result"' in line:
                    event = event or time.perf_counter() - since
                if b'"artifactUpdate"' in line:
                    first = first or time.perf_counter() - since
                    if chunk(CHUNKS).encode() in line:
                        last = time.perf_counter() - since
                if b"TASK_STATE_COMPLETED" in line:
                    wrong = "" if last else "it completed without its last chunk"
                    return Followed(event, first, last, wrong)
    return Followed(wrong=f"a stream ended early, after {seen.decode(errors='replace').strip()[:300]}")


# ------------------------------------------------------- server-sent events


def _post(body: bytes, host: str, key: str, agent: str) -> bytes:
    fields = headers(key) | {"Host": host, "Content-Length": str(len(body))}
    return _head(f"POST /agents/{agent}/jsonrpc HTTP/1.1", fields) + body


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of an answer. An event is written whole, so it is a line between chunk sizes too."""
    while line := await reader.readline():
        yield line


# ---------------------------------------------------- WebSocket (RFC 6455)


async def _upgrade(opened: Opened, host: str, key: str, agent: str) -> None:
    reader, writer = opened
    fields = {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
    }
    fields |= {name: value for name, value in headers(key).items() if name != "Content-Type"}
    writer.write(_head(f"GET /agents/{agent}/ws HTTP/1.1", fields))
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in answer.partition(b"\r\n")[0]:
        raise LoadFailed(f"a WebSocket was refused: {answer.decode(errors='replace')[:300]}")


def _frame(body: bytes) -> bytes:
    """Return a text frame, masked with zeros."""
    size = len(body)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return b"\x81" + length + bytes(4) + body


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the texts of frames. The load lasts shorter than the server waits for the answer to a ping."""
    while True:
        kind, size = await reader.readexactly(2)
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        text = await reader.readexactly(size)
        if kind & 0x0F == 1:
            yield text


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {f"p{share}_ms": percentile(values, share) * 1000 for share in (50, 95, 99)}
