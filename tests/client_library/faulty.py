"""A server on this machine that answers each call as its script says: correctly, wrongly, half, late or never."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson

from a2a.client import REST, RPC, Client, Retries, Timeouts
from a2a.client.clock import Clock
from a2a.types import Interface

TODAY = 1_700_000_000.0
Json = dict[str, Any]


class Asked(NamedTuple):
    """A request as it came."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def wire(self) -> Json:
        """The JSON of the body."""
        return orjson.loads(self.body)  # type: ignore[no-any-return]


Act = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
"""One answer."""


@dataclass
class Faulty:
    """A running server."""

    url: str
    script: list[Act]
    asked: list[Asked] = field(default_factory=list)


@dataclass
class FakeClock:
    """A clock whose pauses take no time, and are written down."""

    pauses: list[float] = field(default_factory=list)
    now: float = 0.0
    chance: float = 0.5
    """The middle: no jitter."""

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 6))
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(
            sleep=self.sleep, steady=lambda: self.now, today=lambda: TODAY + self.now, chance=lambda: self.chance
        )


@asynccontextmanager
async def faulty(*script: Act) -> AsyncIterator[Faulty]:
    """Run a server that performs the acts in order, one for each request, the last again and again."""
    server = Faulty("", list(script))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await _read(reader)
        server.asked.append(asked)
        act = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        await act(asked, writer)

    async with listening(serve) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, port: int = 0) -> AsyncIterator[int]:
    """Serve connections, each by a call, and give the port. At the end no connection is left."""
    serving: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this
        serving.add(this)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    listener = await asyncio.start_server(connected, "127.0.0.1", port)
    async with listener:
        yield listener.sockets[0].getsockname()[1]
        for one in serving:
            one.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    verb, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(verb, path, headers, body)


def rpc(server: Faulty, fake: FakeClock, **options: Any) -> Client:
    """Return a client of the server over JSON-RPC that needs no card."""
    return _client(server, fake, RPC, options)


def rest(server: Faulty, fake: FakeClock, **options: Any) -> Client:
    """Return a client of the server over REST that needs no card."""
    return _client(server, fake, REST, options)


def _client(server: Faulty, fake: FakeClock, binding: str, options: dict[str, Any]) -> Client:
    interface = Interface(url=server.url, binding=binding, version="1.0")
    options = {"timeouts": Timeouts(request=5), "retries": Retries()} | options
    return Client(server.url, interface=interface, clock=fake.clock, **options)


# -------------------------------------------------------------------- answers


def plain(status: int, body: bytes = b"", media: str = "application/json", **headers: str) -> Act:
    """Answer with a status and a body."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {media}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode() + body)
        await writer.drain()

    return act


def result(value: Any) -> Act:
    """Answer with a result in the envelope of JSON-RPC."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await plain(200, orjson.dumps({"jsonrpc": "2.0", "id": asked.wire["id"], "result": value}))(asked, writer)

    return act


def error(code: int, message: str, data: Any = None, status: int = 200, **headers: str) -> Act:
    """Answer with an error in the envelope of JSON-RPC."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        wire = {"code": code, "message": message} | ({} if data is None else {"data": data})
        body = orjson.dumps({"jsonrpc": "2.0", "id": asked.wire["id"], "error": wire})
        await plain(status, body, **headers)(asked, writer)

    return act


async def drop(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""


async def stall(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Say nothing, until the client leaves."""
    await asyncio.sleep(60)


async def half(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Break off in the middle of a body."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"jsonrpc": "2.0",')
    await writer.drain()


def events(*frames: tuple[str | None, Json], silent: bool = False, retry: int | None = None) -> Act:
    """Answer with a stream of events, each with its id, and close it; or stay open and say nothing more."""

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        if retry is not None:
            writer.write(b"retry: %d\n" % retry)
        for name, value in frames:
            wire = value if asked.path != "/" else {"jsonrpc": "2.0", "id": asked.wire["id"], "result": value}
            head = b"" if name is None else f"id: {name}\n".encode()
            writer.write(head + b"data: " + orjson.dumps(wire) + b"\n\n")
        await writer.drain()
        if silent:
            await asyncio.sleep(60)

    return act


# ---------------------------------------------------------------------- tasks


def task(state: str = "TASK_STATE_COMPLETED", texts: Sequence[str] = (), **more: Any) -> Json:
    """Return a task of 1.0."""
    artifacts = [{"artifactId": "a", "parts": [{"text": text} for text in texts]}] if texts else []
    status = {"state": state, "timestamp": "2026-03-02T09:15:05.250Z"}
    return {"id": "t", "contextId": "c", "status": status, "artifacts": artifacts, **more}


def status(state: str, time: str = "2026-03-02T09:15:06.250Z") -> Json:
    """Return a change of status as an event."""
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state, "timestamp": time}}}


def chunk(text: str, *, append: bool = True) -> Json:
    """Return a piece of an artifact as an event."""
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact, "append": append}}


# ---------------------------------------------------------------------- cards


def card(*interfaces: tuple[str, str, str], **more: Any) -> Json:
    """Return a card of 1.0 with interfaces: binding, version, address."""
    listed = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version} for binding, version, url in interfaces
    ]
    return {"name": "n", "description": "d", "version": "1", "supportedInterfaces": listed, "capabilities": {}, **more}


def serving(wires: dict[str, Json]) -> Act:
    """Answer with the JSON of a path, and calls with a task."""

    async def act(asked: Asked, writer: Any) -> None:
        if asked.verb == "GET":
            found = asked.path in wires
            await plain(200 if found else 404, orjson.dumps(wires.get(asked.path, {})))(asked, writer)
        else:
            await result(task())(asked, writer)

    return act
