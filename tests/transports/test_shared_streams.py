"""Shared streams on a running server: two accounts and an agent, over HTTP, server-sent events and WebSocket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import pytest

from tests.conftest import PATIENCE, Server
from tests.transports.websocket.door import bearer, dialled, next_frame

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.requirement("ACP-07", "ACP-08", "ACP-24")]
Json = dict[str, Any]
_ids = count(1)


def wire(method: str, params: Json, **more: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": f"r-{next(_ids)}"} | more


def text(words: str, role: str = "agent") -> Json:
    return {"role": role, "parts": [{"type": "TextPart", "content": words}]}


class Account:
    """An account that calls in ACP."""

    def __init__(self, client: httpx.AsyncClient, key: str) -> None:
        self.client = client
        self.key = key

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    async def call(self, method: str, **params: Any) -> Json:
        request = wire(method, params)
        response = await self.client.post("/jsonrpc", json=request, headers=self.headers)
        answer: Json = response.json()
        assert answer["id"] == request["id"]
        assert set(answer) - {"jsonrpc", "id"} in ({"result"}, {"error"})
        return answer

    async def result(self, method: str, **params: Any) -> Json:
        answer = await self.call(method, **params)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def code(self, method: str, **params: Any) -> int:
        return int((await self.call(method, **params))["error"]["code"])

    @asynccontextmanager
    async def following(self, after: int | None = None, **params: Any) -> AsyncIterator[AsyncIterator[Json]]:
        """Yield the frames of a stream.start over server-sent events."""
        headers = self.headers | {"Accept": "application/json, text/event-stream"}
        headers |= {"Last-Event-ID": str(after)} if after is not None else {}
        async with self.client.stream(
            "POST", "/jsonrpc", json=wire("stream.start", params), headers=headers
        ) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            yield frames(response, after or 0)


async def frames(response: httpx.Response, before: int) -> AsyncIterator[Json]:
    """Yield the frames. The id of a chunk is its number, that of the answer the number before the first chunk."""
    number = None
    async for line in response.aiter_lines():
        if line.startswith("id:"):
            number = int(line[3:])
        if line.startswith("data:"):
            frame = json.loads(line[5:])
            assert number == (before if "result" in frame else frame["params"]["sequence"])
            yield frame
            number = None


def shown(frame: Json) -> tuple[int, str, str, bool]:
    """Return the number, the author, the text and the mark of the end of a stream.chunk."""
    assert set(frame) == {"jsonrpc", "method", "params"}
    assert frame["method"] == "stream.chunk"
    params, chunk = frame["params"], frame["params"]["chunk"]
    words = "".join(part["content"] for part in chunk["parts"])
    return params["sequence"], chunk["agentId"], words, params["isLast"]


@asynccontextmanager
async def accounts(server: Server) -> AsyncIterator[tuple[Account, Account, Account]]:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client, asyncio.timeout(PATIENCE):
        yield (Account(client, server.owner), Account(client, server.colleague), Account(client, server.stranger))


async def test_two_accounts_and_an_agent_talk_over_events_and_a_socket(server: Server) -> None:
    async with accounts(server) as (owner, friend, _):
        async with owner.following(participants=["form-coroutine", "colleague"], metadata={"topic": "x"}) as events:
            first = await anext(events)
            stream = first["result"]["stream"]
            assert first["result"]["type"] == "stream"
            assert (stream["status"], stream["metadata"]) == ("ACTIVE", {"topic": "x"})
            assert sorted(stream["participants"]) == ["colleague", "developer", "form-coroutine"]
            id = stream["streamId"]
            async with dialled(server.url, **bearer(server.colleague)) as socket:
                await socket.send(json.dumps(wire("stream.start", {"streamId": id}, id="follow")))
                assert (await next_frame(socket))["result"]["stream"]["streamId"] == id
                sent = await friend.result("stream.message", streamId=id, message=text("hello"))
                assert (sent["type"], sent["sequence"]) == ("success", 1)
                chunk = {"streamId": id, "chunk": text("part"), "sequence": 7, "isLast": True}
                over_events = [shown(await anext(events)) for _ in range(2)]
                frames: list[Json] = []
                for _ in range(2):
                    request = wire("stream.chunk", chunk)
                    await socket.send(json.dumps(request))
                    while not frames or frames[-1].get("id") != request["id"]:
                        frames.append(await next_frame(socket))
                await owner.result("stream.end", streamId=id, reason="done")
                rest = [shown(frame) async for frame in events]
                while frames[-1].get("method") != "stream/end":
                    frames.append(await next_frame(socket))
        assert over_events == [(1, "colleague", "hello", True), (2, "form-coroutine", "hello", True)]
        assert rest == [(3, "colleague", "part", True), (4, "developer", "done", True)]
        assert [shown(frame)[0] for frame in frames if frame.get("method") == "stream.chunk"] == [1, 2, 3, 4]
        assert frames[-1]["params"] == {"id": "follow", "reason": "done", "resume": False}
        async with friend.following(after=1, streamId=id) as events:
            replayed = [frame async for frame in events]
        assert replayed[0]["result"]["stream"]["status"] == "CLOSED"
        assert [shown(frame)[0] for frame in replayed[1:]] == [2, 3, 4]


async def test_a_socket_continues_after_the_sequence_in_the_params(server: Server) -> None:
    async with accounts(server) as (owner, _, _):
        id = (await owner.result("stream.start"))["stream"]["streamId"]
        for number in (1, 2, 3):
            await owner.result("stream.chunk", streamId=id, chunk=text("x"), sequence=number)
        async with dialled(server.url, **bearer(server.owner)) as socket:
            await socket.send(json.dumps(wire("stream.start", {"streamId": id, "afterSequence": 1})))
            frames = [await next_frame(socket) for _ in range(3)]
            assert "result" in frames[0]
            assert [shown(frame)[0] for frame in frames[1:]] == [2, 3]
            for wrong in (-1, "1", True, 2**40):
                await socket.send(json.dumps(wire("stream.start", {"streamId": id, "afterSequence": wrong})))
                error = (await next_frame(socket))["error"]
                assert (error["code"], error["data"]["field"]) == (-32602, "params.afterSequence")
            await socket.send(json.dumps({"jsonrpc": "2.0", "method": "stream.start", "id": "bare"}))
            assert "result" in await next_frame(socket)


async def test_a_place_that_is_no_number_is_refused_and_misses_no_chunk(server: Server) -> None:
    async with accounts(server) as (owner, _, _):
        id = (await owner.result("stream.start"))["stream"]["streamId"]
        headers = owner.headers | {"Accept": "text/event-stream", "Last-Event-ID": "0x1"}
        answer = await owner.client.post("/jsonrpc", json=wire("stream.start", {"streamId": id}), headers=headers)
        assert answer.json()["error"]["code"] == -32600
        assert "Last-Event-ID must be a whole number" in answer.text


async def test_refusals_have_the_codes_of_acp(server: Server) -> None:
    async with accounts(server) as (owner, friend, stranger):
        id = (await owner.result("stream.start", participants=["form-coroutine"]))["stream"]["streamId"]
        unknown = "00000000-0000-7000-8000-000000000000"
        for who, other in ((friend, id), (stranger, id), (owner, unknown)):
            assert await who.code("stream.message", streamId=other, message=text("x")) == -40003
            assert await who.code("stream.end", streamId=other) == -40003
            assert await who.code("stream.start", streamId=other) == -40003
        errors = [(await friend.call("stream.end", streamId=other))["error"] for other in (id, unknown)]
        for error in errors:
            error["data"].pop("timestamp", None)  # It is the time of the call.
        assert json.dumps(errors[0]).replace(id, unknown) == json.dumps(errors[1])
        assert await owner.code("stream.start", participants=["nobody"]) == -40005
        assert await owner.code("stream.start", participants=["stranger"]) == -40005
        assert await owner.code("stream.message", streamId=id, message={"role": "agent", "parts": []}) == -32602
        assert await owner.code("stream.message", streamId=id, message=text("x", "robot")) == -32602
        assert await owner.code("stream.chunk", streamId=id, chunk=text("x"), sequence="1") == -32602
        assert await owner.code("stream.chunk", streamId=id, chunk=text("x"), sequence=-1) == -32602
        assert await owner.code("stream.start", participants="form-coroutine") == -32602
        assert await owner.code("stream.end", streamId="") == -32602
        paused = await owner.result("stream.end", streamId=id, reason="lunch", pause=True)
        assert paused["message"].endswith("has been paused")
        assert await owner.code("stream.message", streamId=id, message=text("x")) == -40004
        assert (await owner.result("stream.start", streamId=id))["stream"]["status"] == "ACTIVE"
        await owner.result("stream.end", streamId=id)
        for method, params in (
            ("stream.message", {"message": text("x")}),
            ("stream.chunk", {"chunk": text("x"), "sequence": 1}),
            ("stream.end", {}),
            ("stream.start", {}),
        ):
            assert await owner.code(method, streamId=id, **params) == -40004


async def test_a_chunk_may_come_as_a_notification_and_twice(server: Server) -> None:
    async with accounts(server) as (owner, _, _):
        id = (await owner.result("stream.start"))["stream"]["streamId"]
        chunk = {"streamId": id, "chunk": text("once"), "sequence": 1}
        for _ in range(2):
            silent = {"jsonrpc": "2.0", "method": "stream.chunk", "params": chunk}
            response = await owner.client.post("/jsonrpc", json=silent, headers=owner.headers)
            assert (response.status_code, response.content) == (204, b"")
        again = await owner.result("stream.chunk", **chunk)
        assert (again["type"], again["sequence"]) == ("notification", 1)
        assert (await owner.result("stream.message", streamId=id, message=text("next")))["sequence"] == 2


@pytest.mark.requirement("ACP-16")
async def test_parallel_writers_leave_no_gap(server: Server) -> None:
    async with accounts(server) as (owner, friend, _):
        id = (await owner.result("stream.start", participants=["colleague"]))["stream"]["streamId"]
        each = range(1, 26)
        calls = [
            who.result("stream.chunk", streamId=id, chunk=text(f"{name} {number}"), sequence=number)
            for name, who in (("a", owner), ("b", friend))
            for number in each
        ]
        places = [result["sequence"] for result in await asyncio.gather(*calls)]
        assert sorted(places) == list(range(1, 51))
        await owner.result("stream.end", streamId=id)
        async with owner.following(after=0, streamId=id) as events:
            numbers = [shown(frame)[0] async for frame in events if "method" in frame]
        assert numbers == list(range(1, 52))
