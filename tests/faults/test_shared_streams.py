"""kill -9 while an agent answers in a shared stream: afterwards each event of its task is one chunk."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.faults.clients import PATIENCE
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, Node

pytestmark = pytest.mark.fault
HEADERS = {"Authorization": f"Bearer {KEY}", "Accept": "application/json, text/event-stream"}


def wire(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def chunks(client: httpx.AsyncClient, stream_id: str, after: int) -> AsyncIterator[dict[str, Any]]:
    """Yield the params of each stream.chunk after a number."""
    body = wire("stream.start", streamId=stream_id)
    async with client.stream("POST", "/jsonrpc", json=body, headers={"Last-Event-ID": str(after)}) as response:
        async for line in response.aiter_lines():
            if line.startswith("data:") and "method" in (frame := json.loads(line[5:])):
                yield frame["params"]


def caller(node: Node) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=node.base, headers=HEADERS, timeout=PATIENCE)


@pytest.mark.requirement("ACP-24")
async def test_each_event_of_an_answer_is_one_chunk_after_a_kill(start: Start) -> None:
    node = await start(A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5")
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE), caller(node) as client:
        begun = await client.post(
            "/jsonrpc", json=wire("stream.start", participants=["halts"]), headers={"Accept": "application/json"}
        )
        stream_id = begun.json()["result"]["stream"]["streamId"]
        part = {"type": "DataPart", "content": {}}
        sent = await client.post(
            "/jsonrpc", json=wire("stream.message", streamId=stream_id, message={"role": "user", "parts": [part]})
        )
        assert sent.json()["result"]["sequence"] == 1
        async for params in chunks(client, stream_id, 0):
            seen.append(params)
            if len(seen) == 6:
                node.kill()
                break
    await node.start()
    async with asyncio.timeout(PATIENCE), caller(node) as client:
        async for params in chunks(client, stream_id, seen[-1]["sequence"]):
            seen.append(params)
            if params["isLast"] and params["chunk"]["role"] == "agent":
                break
    assert [params["sequence"] for params in seen] == list(range(1, len(seen) + 1))
    assert {params["chunk"]["agentId"] for params in seen[1:]} == {"halts"}
    (end,) = [params for params in seen if params["chunk"]["role"] == "system"]
    assert end["isLast"]
    assert end["chunk"]["parts"][1]["content"] == {"interrupted": True}
    assert 6 <= end["sequence"] < len(seen)
    answer = [params for params in seen[1:] if params is not end]
    (task,) = await node.lines("tasks", "list")
    shown = await node.shown(task["id"])
    assert (shown["state"], shown["attempt"]) == ("completed", 2)
    written = [event for event in shown["events"] if event["kind"] == "artifactUpdate"]
    assert len(answer) - len(written) in (0, 1)  # An end that comes by itself has a chunk without text.
