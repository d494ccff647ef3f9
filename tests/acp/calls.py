"""Calls in ACP through Django's own handler."""

import asyncio
import json
from typing import Any

from tests.conftest import until
from tests.support.doors import StockDoor

Json = dict[str, Any]


def post(wire: Any, key: str | None, **headers: str) -> tuple[int, dict[str, str], Any]:
    """Return the status, the headers and the JSON of the answer to a call; None for an empty body."""
    sent = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {}) | headers
    body = wire if isinstance(wire, bytes) else json.dumps(wire).encode()

    async def ask() -> tuple[int, dict[str, str], bytes]:
        async with StockDoor().ask("POST", "/jsonrpc", body, sent) as reply:
            return reply.status, reply.headers, b"".join([chunk async for chunk in reply.chunks])

    status, told, content = asyncio.run(ask())
    return status, told, json.loads(content) if content else None


def stream(wire: Any, key: str, after: int) -> list[str]:
    """Return the frames of a stream that ends, from behind an event."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    headers |= {"Accept": "text/event-stream", "Last-Event-ID": str(after)}

    async def ask() -> list[str]:
        door = StockDoor()
        async with door.ask("POST", "/jsonrpc", json.dumps(wire).encode(), headers) as reply:
            events = door.events(reply)
            assert events is not None
            return [data.decode() async for _, data in events]

    return asyncio.run(ask())


def call(method: str, params: Any, /, **more: Any) -> Json:
    return {"jsonrpc": "2.0", "id": "req-1", "method": method, "params": params} | more


def said(*parts: Json, **more: Any) -> Json:
    return {"role": "user", "parts": list(parts) or [{"type": "TextPart", "content": "hello"}]} | more


def task_of(method: str, params: Json, key: str) -> Json:
    """Return the task of an answer, which must be in its wrapper."""
    status, _, answer = post(call(method, params), key)
    assert (status, set(answer), answer["id"]) == (200, {"jsonrpc", "id", "result"}, "req-1"), answer
    assert set(answer["result"]) == {"type", "task"}
    assert answer["result"]["type"] == "task"
    task: Json = answer["result"]["task"]
    return task


def error_of(method: str, params: Any, key: str, /, **more: Any) -> Json:
    """Return the error of an answer with status 200. It must be whole, and say what to do."""
    status, _, answer = post(call(method, params, **more), key)
    assert (status, set(answer)) == (200, {"jsonrpc", "id", "error"}), answer
    error: Json = answer["error"]
    assert set(error) == {"code", "message", "data"}
    assert error["data"]["suggestion"]
    return error


def create(key: str, agent: str = "form-function", **message: Any) -> Json:
    params = {"initialMessage": said(**message), "metadata": {"agent": agent}}
    return task_of("tasks.create", params, key)


def settled(key: str, task_id: str, *states: str) -> Json:
    """Return the task once it is in one of these states."""

    def found() -> Json | None:
        task = task_of("tasks.get", {"taskId": task_id}, key)
        return task if task["status"] in states else None

    task: Json = until(found, f"the task is {' or '.join(states)}")
    return task
