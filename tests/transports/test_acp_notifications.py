"""Live following in ACP on a running server: notifications as server-sent events and over WebSocket, and resumed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import pytest

from tests.conftest import PATIENCE, Server
from tests.transports.websocket.door import bearer, dialled, next_frame

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.requirement("ACP-08")]
Json = dict[str, Any]
EVERY = ["STATUS_CHANGE", "NEW_MESSAGE", "NEW_ARTIFACT", "COMPLETED", "FAILED"]
MESSAGE = {"role": "user", "parts": [{"type": "TextPart", "content": "the red one"}]}
STREAM = {"Accept": "application/json, text/event-stream"}
_ids = count(1)


def wire(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": f"r-{next(_ids)}"}


@asynccontextmanager
async def client_of(server: Server, key: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE, headers=headers) as client:
        yield client


async def call(client: httpx.AsyncClient, method: str, **params: Any) -> Json:
    answer: Json = (await client.post("/jsonrpc", json=wire(method, **params))).json()
    return answer


async def asked(client: httpx.AsyncClient) -> str:
    """Return the id of a task whose agent has asked a question."""
    answer = await call(client, "tasks.create", initialMessage=MESSAGE, assignTo="asks")
    task_id: str = answer["result"]["task"]["taskId"]

    async with following(client, after=1, taskId=task_id) as stream:
        async for frame in stream:
            if "method" in frame and frame["params"]["data"]["status"] == "INPUT_REQUIRED":
                break
    return task_id


async def frames(response: httpx.Response) -> AsyncIterator[Json]:
    """Yield the frames of a stream. The id of each event is the sequence of its notification."""
    number = None
    async for line in response.aiter_lines():
        if line.startswith("id:"):
            number = int(line[3:])
        if line.startswith("data:"):
            frame = json.loads(line[5:])
            assert "method" not in frame or frame["params"]["sequence"] == number
            yield frame


@asynccontextmanager
async def following(client: httpx.AsyncClient, after: int | None = None, **params: Any) -> AsyncIterator[Any]:
    headers = STREAM | ({"Last-Event-ID": str(after)} if after is not None else {})
    async with client.stream("POST", "/jsonrpc", json=wire("tasks.subscribe", **params), headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream"), await response.aread()
        yield frames(response)


def event_of(frame: Json) -> str:
    """Return the event of a notification, which is a call without an id."""
    assert (frame["jsonrpc"], frame["method"], set(frame)) == (
        "2.0",
        "task.notification",
        {"jsonrpc", "method", "params"},
    )
    assert set(frame["params"]) == {"taskId", "event", "timestamp", "data", "sequence"}
    event: str = frame["params"]["event"]
    return event


async def test_a_subscription_without_an_address_is_answered_with_the_task_and_then_notified(server: Server) -> None:
    async with client_of(server, server.owner) as client:
        task_id = await asked(client)
        async with following(client, taskId=task_id, events=EVERY) as stream:
            first = await anext(stream)
            assert (set(first), first["result"]["type"]) == ({"jsonrpc", "id", "result"}, "task")
            assert first["result"]["task"]["status"] == "INPUT_REQUIRED"
            await call(client, "tasks.send", taskId=task_id, message=MESSAGE)
            live = [frame async for frame in stream]
        assert [event_of(frame) for frame in live] == ["NEW_MESSAGE", "STATUS_CHANGE", "NEW_ARTIFACT", "COMPLETED"]
        message, working, artifact, end = (frame["params"]["data"] for frame in live)
        assert (message["role"], message["parts"]) == ("user", MESSAGE["parts"])
        assert (working["taskId"], working["status"], end["status"]) == (task_id, "WORKING", "COMPLETED")
        assert artifact["parts"][0]["content"] == "the red one and the red one"
        numbers = [frame["params"]["sequence"] for frame in live]
        for place, number in enumerate(numbers[:-1]):
            async with following(client, after=number, taskId=task_id, events=EVERY) as stream:
                assert (await anext(stream))["result"]["task"]["taskId"] == task_id
                assert [frame async for frame in stream] == live[place + 1 :]
        # The default filter lets the status pass.
        async with following(client, after=numbers[0], taskId=task_id) as stream:
            assert [frame.get("method") and event_of(frame) for frame in [frame async for frame in stream]] == [
                None,
                "STATUS_CHANGE",
                "COMPLETED",
            ]


async def test_notifications_come_over_a_socket_and_go_on_where_they_ended(server: Server) -> None:
    async with client_of(server, server.owner) as client:
        task_id = await asked(client)
        async with dialled(server.url, **bearer(server.owner)) as socket:
            request = wire("tasks.subscribe", taskId=task_id, events=EVERY)
            await socket.send(json.dumps(request))
            first = await next_frame(socket)
            assert (first["id"], first["result"]["task"]["status"]) == (request["id"], "INPUT_REQUIRED")
            await call(client, "tasks.send", taskId=task_id, message=MESSAGE)
            live = [await next_frame(socket) for _ in range(4)]
            assert [event_of(frame) for frame in live] == ["NEW_MESSAGE", "STATUS_CHANGE", "NEW_ARTIFACT", "COMPLETED"]
            end = await next_frame(socket)
            assert (end["method"], end["params"]["id"]) == ("stream/end", request["id"])
            after = live[1]["params"]["sequence"]
            again = wire("tasks.subscribe", taskId=task_id, events=EVERY, afterSequence=after)
            await socket.send(json.dumps(again))
            assert (await next_frame(socket))["id"] == again["id"]
            assert [await next_frame(socket) for _ in range(2)] == live[2:]
            # With an address it is a webhook here, too.
            hook = wire("tasks.subscribe", taskId=task_id, callbackUrl="http://127.0.0.1:65001/")
            assert (await next_frame(socket))["method"] == "stream/end"
            await socket.send(json.dumps(hook))
            assert (await next_frame(socket))["result"]["type"] == "subscription"


async def test_a_stream_needs_a_caller_who_takes_one_and_may_see_the_task(server: Server) -> None:
    async with client_of(server, server.owner) as client, client_of(server, server.stranger) as stranger:
        task_id = await asked(client)
        error = (await call(client, "tasks.subscribe", taskId=task_id))["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, "params.callbackUrl")
        wrong = await stranger.post("/jsonrpc", json=wire("tasks.subscribe", taskId=task_id), headers=STREAM)
        assert wrong.json()["error"]["code"] == -40001
        batch = await client.post("/jsonrpc", json=[wire("tasks.subscribe", taskId=task_id)], headers=STREAM)
        assert [member["error"]["code"] for member in batch.json()] == [-32602]
        with_address = wire("tasks.subscribe", taskId=task_id, callbackUrl="http://127.0.0.1:65001/")
        answer = await client.post("/jsonrpc", json=with_address, headers=STREAM)
        assert answer.json()["result"]["type"] == "subscription"
