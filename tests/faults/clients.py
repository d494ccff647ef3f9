"""A calling agent: its calls, and the streams that it folds."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson

from a2a.dialects.json.json_1_0 import decode_artifact, decode_status, decode_task, encode_task
from a2a.events import ArtifactAdded, Event, StatusChanged, TaskCreated, apply
from a2a.types import Task
from tests.faults.nodes import KEY, Node
from tests.support.servers import NO_TLS, PATIENCE

TERMINAL = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


def message(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a message of the user in 1.0; a part given as inputs is a data part."""
    return {"messageId": secrets.token_hex(8), "role": "ROLE_USER", "parts": list(parts), **members}


def inputs(**values: Any) -> dict[str, Any]:
    """Return a message with the inputs of an agent."""
    return message({"data": values})


def envelope(method: str, params: Any, rpc_id: Any = 1) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params})


class Client:
    """Calls one node."""

    def __init__(self, node: Node, http: httpx.AsyncClient) -> None:
        self.node = node
        self.http = http

    def url(self, agent: str | None = None) -> str:
        return f"{self.node.base}/agents/{agent}/jsonrpc" if agent else f"{self.node.base}/jsonrpc"

    async def reply(self, method: str, params: Any, *, agent: str | None = None) -> dict[str, Any]:
        """Return the whole JSON-RPC answer."""
        response = await self.http.post(self.url(agent), content=envelope(method, params))
        return orjson.loads(response.content)

    async def result(self, method: str, params: Any, *, agent: str | None = None) -> Any:
        reply = await self.reply(method, params, agent=agent)
        assert "result" in reply, reply
        return reply["result"]

    async def send(self, agent: str, **values: Any) -> str:
        """Return the id of a new task that the agent works on from now on."""
        params = {"message": inputs(**values), "configuration": {"returnImmediately": True}}
        return (await self.result("SendMessage", params, agent=agent))["task"]["id"]

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self.result("GetTask", {"id": task_id})

    async def state(self, task_id: str, state: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Return the task, once it is in that state."""
        async with asyncio.timeout(seconds):
            while True:
                task = await self.get(task_id)
                if task["status"]["state"] == state:
                    return task
                assert task["status"]["state"] not in TERMINAL, task["status"]
                await asyncio.sleep(0.05)

    async def completed(self, count: int, seconds: float = 4 * PATIENCE) -> None:
        """Wait for so many completed tasks of this caller."""
        wish = {"status": "TASK_STATE_COMPLETED", "pageSize": 1}
        async with asyncio.timeout(seconds):
            while True:
                if (await self.result("ListTasks", wish))["totalSize"] >= count:
                    return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def client(node: Node) -> AsyncIterator[Client]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    async with httpx.AsyncClient(headers=HEADERS, timeout=PATIENCE, limits=limits, verify=NO_TLS) as http:
        yield Client(node, http)


class Frame(NamedTuple):
    """One server-sent event."""

    id: int
    data: bytes

    @property
    def result(self) -> dict[str, Any]:
        return orjson.loads(self.data)["result"]

    @property
    def state(self) -> str | None:
        """The state it tells."""
        (body,) = self.result.values()
        return body["status"]["state"] if "status" in body else None


class Listener:
    """An open stream and what has come out of it."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.comments: list[str] = []
        self.broke: httpx.TransportError | None = None
        self.refusal = b""
        self.over = False
        self.news = asyncio.Event()

    @property
    def last_id(self) -> int:
        return self.frames[-1].id

    def began_again(self, events: int = 1) -> bool:
        """Return whether another attempt has been seen, and so much of it."""
        _, *again = [frame.id for frame in self.frames if frame.state == "TASK_STATE_SUBMITTED"]
        return bool(again) and self.last_id >= again[0] + events

    @property
    def task_id(self) -> str:
        return self.frames[0].result["task"]["id"]

    async def read(self, http: httpx.AsyncClient, url: str, body: bytes, headers: dict[str, str]) -> None:
        try:
            async with http.stream("POST", url, content=body, headers=headers) as response:
                if response.headers["content-type"].startswith("text/event-stream"):
                    await self._take(response)
                else:
                    self.refusal = await response.aread()
        except httpx.TransportError as error:
            self.broke = error
        finally:
            self.over = True
            self.news.set()

    async def _take(self, response: httpx.Response) -> None:
        event: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                event[name] = value
            elif event:
                assert "event" not in event, event
                self.frames.append(Frame(int(event["id"]), event["data"].encode()))
                event = {}
                self.news.set()

    async def until(self, true: Callable[["Listener"], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not true(self):
                assert not self.over, f"it ended early: {self.broke!r} {self.refusal!r} {self.frames[-1:]}"
                self.news.clear()
                await self.news.wait()

    async def count(self, frames: int, seconds: float = PATIENCE) -> None:
        """Wait for so many frames."""
        await self.until(lambda seen: len(seen.frames) >= frames, seconds)

    async def end(self, seconds: float = PATIENCE) -> None:
        """Wait for the end of the stream, however it ends."""
        async with asyncio.timeout(seconds):
            while not self.over:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def listening(
    caller: Client, method: str, params: Any, *, agent: str | None = None, after: int | None = None
) -> AsyncIterator[Listener]:
    """Give a stream that is read in the background."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    listener = Listener()
    body = envelope(method, params)
    reading = asyncio.create_task(listener.read(caller.http, caller.url(agent), body, headers))
    try:
        yield listener
        if reading.done():
            reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def event_of(result: dict[str, Any]) -> Event:
    """Return the event that a frame of 1.0 shows."""
    ((kind, body),) = result.items()
    if kind == "task":
        return TaskCreated(task=decode_task(body))
    if kind == "statusUpdate":
        return StatusChanged(status=decode_status(body["status"]))
    assert kind == "artifactUpdate", result
    artifact = decode_artifact(body["artifact"])
    return ArtifactAdded(artifact=artifact, append=body.get("append", False), last_chunk=body.get("lastChunk", False))


def folded(frames: Sequence[Frame], start: Task | None = None) -> Task:
    """Return the task that a client arrives at."""
    task = start
    for frame in frames:
        task = apply(task, event_of(frame.result))
    assert task is not None
    return task


def assert_whole(*connections: Sequence[Frame]) -> dict[str, Any]:
    """Check that a client saw no gap and nothing twice over its connections; each later one begins with the task
    as of its cursor. Returns the fold as JSON of 1.0."""
    first, *later = connections
    seen = list(first)
    for frames in later:
        cursor, task = frames[0].id, frames[0].result["task"]
        assert cursor == seen[-1].id
        assert encode_task(folded(seen)) == task
        seen += frames[1:]
    assert [frame.id for frame in seen] == list(range(1, len(seen) + 1))
    assert [frame.state in TERMINAL for frame in seen] == [False] * (len(seen) - 1) + [True]
    return encode_task(folded(seen))


@contextmanager
def silent(node: Node, task_id: str) -> Iterator[socket.socket]:
    """Give a client that asks for all events of a task and then does not read, with small buffers of its own."""
    with deaf(node, envelope("SubscribeToTask", {"id": task_id}), {"Last-Event-ID": "1"}) as connection:
        yield connection


@contextmanager
def deaf(
    node: Node, body: bytes, headers: dict[str, str] | None = None, path: str = "/jsonrpc"
) -> Iterator[socket.socket]:
    """Give a client that calls and then does not read, with small buffers of its own."""
    head = {**HEADERS, "Host": f"127.0.0.1:{node.port}", "Content-Length": str(len(body)), **(headers or {})}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        connection.settimeout(5)
        connection.connect(("127.0.0.1", node.port))
        connection.sendall("\r\n".join(lines).encode() + body)
        yield connection


def pipe(folder: Path) -> Path:
    """Return a named pipe, which blocks an agent that opens it until `release`."""
    made = folder / "pipe"
    os.mkfifo(made)
    return made


def release(blocked: Path) -> None:
    """Let the agent go that a pipe blocks."""
    os.close(os.open(blocked, os.O_WRONLY))


async def ended(caller: Client, task_id: str, seconds: float = PATIENCE) -> dict[str, Any]:
    """Return the task once it has ended."""
    async with asyncio.timeout(seconds):
        while True:
            task = await caller.get(task_id)
            if state(task) in TERMINAL:
                return task
            await asyncio.sleep(0.05)


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"])


def words(task: dict[str, Any]) -> str:
    return str(task["status"]["message"]["parts"][0]["text"])


def closed(wire: socket.socket) -> bool:
    """Return whether the server has cut the connection, without reading what it has sent."""
    return Path("/proc/net/tcp").read_text(encoding="ascii").count(_place(wire)) == 0


def unread(node: Node) -> list[int]:
    """Return for each open connection to the server how many bytes it has not read, as the kernel lists them."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return [int(line[4].split(":")[1], 16) for line in lines if (line[1][-4:], line[3]) == (f"{node.port:04X}", "01")]


def _place(wire: socket.socket) -> str:
    """Return how the kernel lists the server's side of an open connection."""
    return f":{wire.getpeername()[1]:04X} 0100007F:{wire.getsockname()[1]:04X} 01"
