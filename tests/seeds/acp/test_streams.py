"""The flows and errors of ACP's streams, over server-sent events and over WebSocket.

A stream is a conversation of several participants. The document says which methods it has, and leaves open how chunks
come to a participant: see docs/systems/acp-streams.md.
"""

import asyncio
from typing import Any

import pytest

from tests.seeds.acp.client import AcpClient, Json, RpcError, checked, following, opened, request
from tests.seeds.acp.conftest import World

pytestmark = [pytest.mark.storage, pytest.mark.requirement("ACP-07", "ACP-08", "ACP-24")]
ME, PARTNER, OUTSIDER, LISTENER = "agent-analysis-001", "agent-partner-002", "agent-outsider", "agent-listener"
UNKNOWN = "00000000-0000-7000-8000-000000000000"


def text(words: str, role: str = "agent") -> Json:
    return {"role": role, "parts": [{"type": "TextPart", "content": words}]}


def started(agent: AcpClient, *participants: str) -> str:
    """Begin a stream, and return its id."""
    result = agent.call("stream.start", {"participants": [*participants], "metadata": {"purpose": "consultation"}})
    assert result["type"] == "stream"
    stream = result["stream"]
    assert (stream["status"], stream["metadata"]) == ("ACTIVE", {"purpose": "consultation"})
    assert {*participants, ME} == {*stream["participants"]}
    assert stream["createdAt"].endswith("Z")
    assert "closedAt" not in stream
    stream_id: str = stream["streamId"]
    return stream_id


def shown(notification: Json) -> tuple[int, str, str, bool]:
    """Return the number, the author, the text and the mark of the end of a chunk, once it has its schema."""
    assert set(notification) == {"jsonrpc", "method", "params"}
    assert (notification["jsonrpc"], notification["method"]) == ("2.0", "stream.chunk")
    params = notification["params"]
    assert set(params) == {"streamId", "chunk", "sequence", "isLast"}
    chunk = params["chunk"]
    assert chunk["timestamp"].endswith("Z")
    return params["sequence"], chunk["agentId"], "".join(part["content"] for part in chunk["parts"]), params["isLast"]


def code(agent: AcpClient, method: str, params: Any) -> tuple[int, str]:
    with pytest.raises(RpcError) as caught:
        agent.call(method, params)
    assert caught.value.data["suggestion"]
    return caught.value.code, caught.value.message


def test_the_flow_of_a_stream_over_events(world: World, agent: AcpClient) -> None:
    partner = world.agents[PARTNER]
    with following(agent, {"participants": [PARTNER, "form-coroutine"]}) as events:
        stream = checked(next(events))["result"]["stream"]
        stream_id = stream["streamId"]
        assert stream["status"] == "ACTIVE"
        sent = partner.call("stream.message", {"streamId": stream_id, "message": text("What is new?")})
        assert (sent["type"], sent["sequence"]) == ("success", 1)
        assert shown(next(events)) == (1, PARTNER, "What is new?", True)
        assert shown(next(events)) == (2, "form-coroutine", "What is new?", True)
        piece = {"streamId": stream_id, "chunk": text("Some"), "sequence": 1, "isLast": False}
        answer = partner.post({"jsonrpc": "2.0", "method": "stream.chunk", "params": piece})
        assert (answer.status_code, answer.content) == (204, b"")
        assert shown(next(events)) == (3, PARTNER, "Some", False)
        called = partner.call("stream.chunk", piece | {"chunk": text(" news"), "sequence": 2, "isLast": True})
        assert (called["type"], called["sequence"]) == ("notification", 4)
        assert shown(next(events)) == (4, PARTNER, " news", True)
        ended = agent.call("stream.end", {"streamId": stream_id, "reason": "Thank you"})
        assert ended["type"] == "success"
        assert [shown(event) for event in events] == [(5, ME, "Thank you", True)]
    with following(partner, {"streamId": stream_id}, after=3) as events:
        stream = checked(next(events))["result"]["stream"]
        assert (stream["status"], stream["closedAt"][-1]) == ("CLOSED", "Z")
        assert [shown(event)[0] for event in events] == [4, 5]


def test_the_flow_of_a_stream_over_websocket(world: World, agent: AcpClient) -> None:
    partner = world.agents[PARTNER]

    async def flow() -> None:
        async with opened(agent) as mine, opened(partner) as other:
            begun = await mine.call("stream.start", {"participants": [PARTNER]})
            stream_id = begun["stream"]["streamId"]
            joined = await other.call("stream.start", {"streamId": stream_id})
            assert (joined["type"], joined["stream"]["status"]) == ("stream", "ACTIVE")
            await other.notify("stream.chunk", {"streamId": stream_id, "chunk": text("one"), "sequence": 1})
            await other.call("stream.message", {"streamId": stream_id, "message": text("two")})
            await mine.call(
                "stream.chunk", {"streamId": stream_id, "chunk": text("three"), "sequence": 1, "isLast": True}
            )
            await mine.call("stream.end", {"streamId": stream_id})
            for socket in (mine, other):
                chunks = await socket.received("stream.chunk", 4)
                assert [shown(chunk)[:3] for chunk in chunks[:3]] == [
                    *((1, PARTNER, "one"), (2, PARTNER, "two")),
                    *((3, ME, "three"),),
                ]
                assert shown(chunks[3])[0] == 4

    asyncio.run(flow())


@pytest.mark.requirement("ACP-16")
def test_the_example_of_correlation(agent: AcpClient) -> None:
    message = {"initialMessage": text("hello", "user")}
    calls = {"req-1": ("tasks.get", {"taskId": "t"}), "req-2": ("stream.start", {}), "req-3": ("tasks.create", message)}

    async def flow() -> list[Json | BaseException]:
        async with opened(agent) as socket:
            waiting = [socket.call(method, params, rpc_id) for rpc_id, (method, params) in calls.items()]
            return await asyncio.gather(*waiting, return_exceptions=True)

    missing, stream, task = asyncio.run(flow())
    assert isinstance(missing, RpcError)
    assert isinstance(stream, dict)
    assert isinstance(task, dict)
    assert (missing.code, stream["type"], task["type"]) == (-40001, "stream", "task")


def test_a_stream_that_is_not_there(world: World, agent: AcpClient) -> None:
    stream_id = started(agent, PARTNER)
    outsider = world.agents[OUTSIDER]
    for caller, place in ((agent, UNKNOWN), (outsider, stream_id), (outsider, UNKNOWN)):
        for method, params in (
            ("stream.start", {}),
            ("stream.message", {"message": text("x")}),
            ("stream.chunk", {"chunk": text("x"), "sequence": 1}),
            ("stream.end", {}),
        ):
            assert code(caller, method, {"streamId": place} | params) == (-40003, "Stream not found")
    with following(outsider, {"streamId": stream_id}) as events:
        assert [checked(answer)["error"]["code"] for answer in events] == [-40003]


def test_a_stream_that_is_paused_or_closed(agent: AcpClient) -> None:
    stream_id = started(agent)
    message = {"streamId": stream_id, "message": text("x")}
    agent.call("stream.end", {"streamId": stream_id, "pause": True})
    assert code(agent, "stream.message", message)[0] == -40004
    resumed = agent.call("stream.start", {"streamId": stream_id})
    assert resumed["stream"]["status"] == "ACTIVE"
    agent.call("stream.message", message)
    agent.call("stream.end", {"streamId": stream_id, "reason": "Done"})
    for method, params in (
        ("stream.start", {"streamId": stream_id}),
        ("stream.message", message),
        ("stream.chunk", {"streamId": stream_id, "chunk": text("x"), "sequence": 1}),
        ("stream.end", {"streamId": stream_id}),
    ):
        assert code(agent, method, params) == (-40004, "Stream already closed")


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("stream.start", {"participants": ["nobody"]}, -40005),
        ("stream.start", {"participants": "echo"}, -32602),
        ("stream.message", {"streamId": 7, "message": text("x")}, -32602),
        ("stream.message", {"message": text("x")}, -32602),
        ("stream.chunk", {"streamId": UNKNOWN, "chunk": text("x"), "sequence": "1"}, -32602),
        ("stream.end", {}, -32602),
        ("stream.nope", {}, -32601),
    ],
)
def test_each_error_of_streams_has_its_code(agent: AcpClient, method: str, params: Any, expected: int) -> None:
    assert code(agent, method, params)[0] == expected


@pytest.mark.requirement("ACP-14")
def test_a_listener_hears_a_stream_and_does_not_speak(world: World, agent: AcpClient) -> None:
    listener = world.agents[LISTENER]
    stream_id = started(agent, LISTENER)
    for method, params in (
        ("stream.start", {}),
        ("stream.message", {"streamId": stream_id, "message": text("x")}),
        ("stream.end", {"streamId": stream_id}),
    ):
        answer = listener.post(request(method, params))
        error = checked(answer.json())["error"]
        assert (answer.status_code, error["code"]) == (403, -40008)
        assert error["data"]["requiredScopes"] == ["acp:streams:write"]
    with following(listener, {"streamId": stream_id}) as events:
        assert checked(next(events))["result"]["stream"]["status"] == "ACTIVE"
        agent.call("stream.message", {"streamId": stream_id, "message": text("hear")})
        assert shown(next(events)) == (1, ME, "hear", True)
        agent.call("stream.end", {"streamId": stream_id})
        assert len(list(events)) == 1


def test_a_chunk_that_comes_twice_is_there_once(agent: AcpClient) -> None:
    stream_id = started(agent)
    piece = {"streamId": stream_id, "chunk": text("once"), "sequence": 1}
    places = [agent.call("stream.chunk", piece)["sequence"] for _ in range(2)]
    assert places == [1, 1]
    assert code(agent, "stream.chunk", piece | {"chunk": text("twice")})[0] == -38012
    assert agent.call("stream.message", {"streamId": stream_id, "message": text("next")})["sequence"] == 2
