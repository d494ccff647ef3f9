"""``python -m tests.faults.pusher PORT KEY SECONDS CALLERS``: callers of one owner who offer more than can be done.

It is a process of its own that reads no more of an answer than it must, so that the processors are left to the server
under load. With a usual client library in the test's own process, that process took a core, and what a bystander
measured was the wait for it.
"""

import asyncio
import sys
import time

import msgspec
from msgspec import Struct, field

from tests.faults.clients import HEADERS, envelope, inputs
from tests.faults.nodes import ROOT, Node

PERIOD = 0.5
"""Seconds from one offer of a caller to the next, unless the answer takes longer."""
TASK_SECONDS = 1


class Seen(Struct):
    """The answers that the callers have seen."""

    statuses: dict[str, int] = field(default_factory=dict)
    waits: list[int] = field(default_factory=list)
    """The values of Retry-After."""
    spans: list[float] = field(default_factory=list)
    """Seconds that the answers took."""


def offer_of(port: int, key: str) -> bytes:
    """Return a request for a new task of a second, which waits for no result."""
    message = {"message": inputs(seconds=TASK_SECONDS), "configuration": {"returnImmediately": True}}
    body = envelope("SendMessage", message)
    headers = HEADERS | {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {key}", "Content-Length": len(body)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /agents/sleeper/jsonrpc HTTP/1.1\r\n{lines}\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader) -> dict[str, str]:
    """Read an answer, and return its headers, with the status as `status`."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    await reader.readexactly(int(headers["content-length"]))
    return headers | {"status": first.split()[1]}


async def push(port: int, key: str, ends: float, seen: Seen) -> None:
    """Offer tasks on one connection until that time on the monotonic clock."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (since := time.monotonic()) < ends:
        writer.write(offer_of(port, key))
        headers = await read_answer(reader)
        seen.spans.append(time.monotonic() - since)
        status = headers["status"]
        seen.statuses[status] = seen.statuses.get(status, 0) + 1
        if "retry-after" in headers:
            seen.waits.append(int(headers["retry-after"]))
        await asyncio.sleep(max(0.0, since + PERIOD - time.monotonic()))
    writer.close()
    await writer.wait_closed()


async def push_all(port: int, key: str, seconds: float, callers: int) -> Seen:
    """Have so many callers offer tasks for so long, one after the other within a period."""
    seen, ends = Seen(), time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(push(port, key, ends, seen))
            await asyncio.sleep(PERIOD / callers)
    return seen


async def pushed(node: Node, key: str, seconds: float, callers: int) -> Seen:
    """Return what so many callers have seen of a node."""
    command = [sys.executable, "-m", "tests.faults.pusher", str(node.port), key, str(seconds), str(callers)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return msgspec.json.decode(output, type=Seen)


if __name__ == "__main__":
    port, key, seconds, callers = sys.argv[1:]
    seen = asyncio.run(push_all(int(port), key, float(seconds), int(callers)))
    print(msgspec.json.encode(seen).decode())  # noqa: T201  # for the test
