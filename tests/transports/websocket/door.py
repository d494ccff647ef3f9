"""The WebSocket door in the story, and a client of it, with an independent implementation of the protocol."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets import ClientConnection, ConnectionClosed, InvalidStatus, connect

from tests.conftest import PATIENCE
from tests.support.doors import Events, LiveDoor, Reply, once

PARAMETERS = "a2a-service-parameters"
FRAME_HEADERS = {"A2A-Version", "A2A-Extensions", "X-A2A-Extensions", "X-Budget-USD"}
"""Headers that the story's client sends in the member of its frames."""
Json = dict[str, Any]


@asynccontextmanager
async def dialled(url: str, path: str = "/ws", **more: Any) -> AsyncIterator[ClientConnection]:
    """Yield a connection to the server at the HTTP address."""
    address = url.replace("http", "ws", 1) + path
    async with asyncio.timeout(PATIENCE), connect(address, proxy=None, max_size=None, **more) as client:
        yield client


def bearer(key: str) -> Json:
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}


def parameters(version: str | None) -> Json:
    """Return the member of a frame that names its version; no member without a version."""
    return {PARAMETERS: {"A2A-Version": version}} if version else {}


async def next_frame(client: ClientConnection) -> Any:
    return json.loads(await client.recv())


async def frames_of(client: ClientConnection) -> list[Any]:
    """Return all frames until the server closes."""
    frames = []
    with suppress(ConnectionClosed):
        while True:
            frames.append(await next_frame(client))
    return frames


def message(text: str = "hello", **more: Any) -> Json:
    return {"messageId": more.pop("id", "m"), "role": "ROLE_USER", "parts": [{"text": text}], **more}


def call(rpc_id: Any, method: str, params: Any, **parameters: Any) -> str:
    wire = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}
    return json.dumps(wire | {PARAMETERS: {"A2A-Version": "1.0", **parameters}})


def streaming(rpc_id: Any, agent: str, **more: Any) -> str:
    return call(rpc_id, "SendStreamingMessage", {"message": message(**more), "metadata": {"agent": agent}})


async def refused(address: str, path: str = "/ws", **more: Any) -> tuple[int, Any, dict[str, str]]:
    """Return the status, the error and the headers of a handshake that is refused."""
    with pytest.raises(InvalidStatus) as caught:
        async with dialled(address, path, **more):
            pass
    response = caught.value.response
    error = json.loads(response.body or b"")["error"]
    return response.status_code, error, {name.lower(): value for name, value in response.headers.items()}


async def first_answer(address: str, path: str = "/ws", **more: Any) -> Any:
    async with dialled(address, path, **more) as client:
        await client.send(call(1, "GetTask", {"id": "none"}))
        return await next_frame(client)


def protocol_of(key: str) -> str:
    return "bearer." + urlsafe_b64encode(key.encode()).decode().rstrip("=")


class SocketReply(Reply):
    """A reply whose events, if it is a stream, come from the socket."""

    client: ClientConnection
    first: Any


class SocketDoor(LiveDoor):
    """A socket for each call; files are fetched over HTTP, whichever door their links came through."""

    announces_ends = False

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        if method == "GET":
            async with super().ask(method, path, body, headers) as reply:
                yield reply
            return
        wire = self._with_parameters(json.loads(body), headers)
        credentials = {"additional_headers": {"Authorization": headers["Authorization"]}}
        try:
            async with dialled(self.url, path.removesuffix("jsonrpc") + "ws", **credentials) as client:
                await client.send(json.dumps(wire))
                yield await self._reply(client, wire)
        except InvalidStatus as error:
            response = error.response
            yield Reply(response.status_code, dict(response.headers), once(bytes(response.body or b"")))

    def events(self, reply: Reply) -> Events | None:
        return events_of(reply) if isinstance(reply, SocketReply) else None

    @staticmethod
    def _with_parameters(wire: Any, headers: dict[str, str]) -> Any:
        if isinstance(wire, list):
            return [SocketDoor._with_parameters(member, headers) for member in wire]
        parameters: Json = {name: value for name, value in headers.items() if name in FRAME_HEADERS}
        after = headers.get("Last-Event-ID", "")
        if after:
            parameters["afterSequence"] = int(after) if after.isdigit() and len(after) < 19 else after
        return wire | {PARAMETERS: parameters} if isinstance(wire, dict) and parameters else wire

    @staticmethod
    async def _reply(client: ClientConnection, wire: Any) -> Reply:
        members = wire if isinstance(wire, list) else [wire]
        if all(isinstance(member, dict) and "id" not in member for member in members):
            await client.send(call("probe", "nope", {}))
            assert (await next_frame(client))["id"] == "probe", "a notification has no answer"
            return Reply(204, {}, once(b""))
        answer = await next_frame(client)
        headers = {"content-type": "application/json"} | headers_of(answer)
        is_event = isinstance(answer, dict) and "sequence" in answer
        if is_event or (isinstance(wire, dict) and "result" in answer and "tream" in wire["method"]):
            reply = SocketReply(200, headers, once(json.dumps(answer).encode()))
            reply.client, reply.first = client, answer
            return reply
        return Reply(200, headers, once(json.dumps(without_parameters(answer)).encode()))


def headers_of(answer: Any) -> dict[str, str]:
    """Return the service parameters of an answer, those of a batch joined."""
    joined: dict[str, list[str]] = {}
    for member in answer if isinstance(answer, list) else [answer]:
        for name, value in member.get(PARAMETERS, {}).items():
            joined.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(dict.fromkeys(values)) for name, values in joined.items()}


def without_parameters(answer: Any) -> Any:
    if isinstance(answer, list):
        return [without_parameters(member) for member in answer]
    return {name: value for name, value in answer.items() if name not in {PARAMETERS, "sequence"}}


async def events_of(reply: SocketReply) -> Events:
    """Yield the events until the last frame, which names the call."""
    frame = reply.first
    rpc_id = frame["id"]
    while frame.get("method") != "stream/end":
        assert frame["id"] == rpc_id
        yield frame.get("sequence"), json.dumps(without_parameters(frame)).encode()
        frame = await next_frame(reply.client)
    assert frame["params"] == {"id": rpc_id, "reason": "done", "resume": False}
