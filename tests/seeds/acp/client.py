"""A client of ACP, written from the document "JSON-RPC Foundation for ACP Communication" alone.

It imports nothing of the server. It gets tokens by client credentials, keeps them by their scopes, and renews them 300
seconds before their end. It talks over HTTP, or over one WebSocket connection, where answers may come in any order.
"""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import httpx
from websockets import ClientConnection, connect

Json = dict[str, Any]
REFRESH_THRESHOLD = 300
TIMEOUTS = {"tasks.get": 5.0, "tasks.create": 30.0, "stream.start": 15.0}
"""Seconds that the document gives to a method."""
SLACK = 6
"""The factor by which a busy machine is given more time."""
TLS = ssl.create_default_context()


class RpcError(Exception):
    """The error of a response."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']} {error['message']}: {error.get('data')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data") or {}


def checked(response: Any) -> Json:
    """Return a response once it has the schema of the document: an id, and a result or an error, and nothing else."""
    assert isinstance(response, dict)
    assert response["jsonrpc"] == "2.0"
    assert set(response) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert response["id"] is None or type(response["id"]) in (str, int)
    if "error" in response:
        error = response["error"]
        assert set(error) <= {"code", "message", "data"}
        assert type(error["code"]) is int
        assert isinstance(error["message"], str)
    else:
        assert response["result"]["type"] in {"task", "stream", "subscription", "notification", "success"}
    return response


def result_of(response: Json) -> Json:
    """Return the result of a response. Raises RpcError."""
    if "error" in response:
        raise RpcError(response["error"])
    result: Json = response["result"]
    return result


def request(method: str, params: Any, rpc_id: Any = ...) -> Json:
    """Return a request. Without an id it gets one that is unique and traceable."""
    wire = {"jsonrpc": "2.0", "method": method, "params": params}
    return wire | {"id": f"req-client-{uuid4()}" if rpc_id is ... else rpc_id}


class AcpClient:
    """A client of one endpoint, with the credentials of one agent."""

    def __init__(self, base: str, client_id: str, secret: str, scopes: tuple[str, ...]) -> None:
        self.base, self.client_id, self.secret, self.scopes = base, client_id, secret, scopes
        self.tokens: dict[str, tuple[str, float]] = {}
        self.http = httpx.Client(timeout=60, verify=TLS)

    def token(self) -> str:
        """Return a token with the scopes: that of the cache until 300 seconds before its end, or else a new one."""
        name = ":".join(sorted(self.scopes))
        token, expires_at = self.tokens.get(name, ("", 0.0))
        if expires_at - time.monotonic() < REFRESH_THRESHOLD:
            form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}
            answer = self.http.post(f"{self.base}/oauth2/token", data=form | {"scope": " ".join(self.scopes)})
            assert answer.status_code == 200, answer.text
            grant = answer.json()
            assert grant["token_type"] == "Bearer"
            token, expires_at = grant["access_token"], time.monotonic() + grant["expires_in"]
            self.tokens[name] = (token, expires_at)
        return token

    def post(self, wire: Any, *, token: str | None = None, **headers: str) -> httpx.Response:
        """Send a body with a token, that of the client by default. An empty token sends none."""
        token = self.token() if token is None else token
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        body = wire if isinstance(wire, bytes) else json.dumps(wire).encode()
        method = wire.get("method") if isinstance(wire, dict) else None
        return self.http.post(
            f"{self.base}/jsonrpc",
            content=body,
            headers={"Content-Type": "application/json"} | authorization | headers,
            timeout=TIMEOUTS.get(str(method), 30.0) * SLACK,
        )

    def call(self, method: str, params: Any) -> Json:
        """Return the result of a method. Raises RpcError."""
        wire = request(method, params)
        answer = self.post(wire)
        assert answer.headers["content-type"] == "application/json"
        response = checked(answer.json())
        assert response["id"] == wire["id"]
        return result_of(response)

    def task(self, method: str, params: Any) -> Json:
        """Return the task of a result."""
        result = self.call(method, params)
        assert result["type"] == "task"
        task: Json = result["task"]
        assert {"taskId", "status", "createdAt"} <= set(task)
        assert task["status"] in {"SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED"}
        return task

    def settled(self, task_id: str, *states: str) -> Json:
        """Poll a task until it is in one of the states."""
        deadline = time.monotonic() + 60
        while (task := self.task("tasks.get", {"taskId": task_id}))["status"] not in states:
            assert time.monotonic() < deadline, task
            time.sleep(0.02)
        return task


class AcpSocket:
    """Calls over one WebSocket connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.waiting: dict[Any, asyncio.Future[Json]] = {}
        self.notifications: list[Json] = []

    async def read(self) -> None:
        """Give each response to the call with its id."""
        async for frame in self.connection:
            wire = json.loads(frame)
            if "method" in wire:
                self.notifications.append(wire)
            elif (future := self.waiting.pop(wire["id"], None)) is not None:
                future.set_result(checked(wire))

    async def call(self, method: str, params: Any, rpc_id: Any = ...) -> Json:
        """Return the result of a method. Raises RpcError."""
        wire = request(method, params, rpc_id)
        self.waiting[wire["id"]] = future = asyncio.get_running_loop().create_future()
        await self.connection.send(json.dumps(wire))
        return result_of(await asyncio.wait_for(future, 60))

    async def settled(self, task_id: str, state: str) -> Json:
        """Poll a task until it is in the state."""
        for _ in range(3_000):
            task: Json = (await self.call("tasks.get", {"taskId": task_id}))["task"]
            if task["status"] == state:
                return task
            await asyncio.sleep(0.02)
        raise AssertionError(f"the task is not {state}")

    async def received(self, method: str, count: int) -> list[Json]:
        """Return the notifications of a method, once there are so many."""
        for _ in range(3_000):
            found = [wire for wire in self.notifications if wire["method"] == method]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"there are not {count} of {method}, only {self.notifications}")

    async def notify(self, method: str, params: Any) -> None:
        await self.connection.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))


@contextmanager
def following(client: AcpClient, params: Json, *, after: int | None = None) -> Iterator[Iterator[Json]]:
    """Start a stream over server-sent events: yield the answer and then the notifications, until the stream is closed.

    Those after a sequence number are sent again. An error is the only answer.
    """
    headers = {"Authorization": f"Bearer {client.token()}", "Accept": "application/json, text/event-stream"}
    headers |= {} if after is None else {"Last-Event-ID": str(after)}
    wire = request("stream.start", params)
    with client.http.stream("POST", f"{client.base}/jsonrpc", json=wire, headers=headers) as response:
        if response.headers["content-type"] == "application/json":
            yield iter([json.loads(response.read())])
        else:
            assert response.headers["content-type"].startswith("text/event-stream")
            yield (json.loads(line[5:]) for line in response.iter_lines() if line.startswith("data:"))


@asynccontextmanager
async def opened(client: AcpClient) -> AsyncIterator[AcpSocket]:
    """Yield a connection of the client's agent."""
    url = client.base.replace("http", "ws", 1) + "/ws"
    headers = {"Authorization": f"Bearer {client.token()}"}
    async with connect(url, proxy=None, additional_headers=headers) as connection:
        socket = AcpSocket(connection)
        reading = asyncio.create_task(socket.read())
        try:
            yield socket
        finally:
            reading.cancel()
