"""Frames: calls and streams matched by id, ends of streams, resuming, and whatever a client may send instead."""

import json
from typing import Any

import pytest
from websockets import ClientConnection

from a2a.extensions import HEADER, OLD_HEADER
from a2a.language import VERSION_HEADER
from a2a.money import HEADER as BUDGET
from tasks_app.limits.accounts import account
from tasks_app.transports.call import Reply
from tasks_app.transports.frames import AFTER
from tasks_app.transports.streams import Stream
from tasks_app.transports.websocket import WebSocket
from tests.conftest import ROOT, Person, Server
from tests.support.accounts import holdings
from tests.transports.websocket.door import PARAMETERS, bearer, call, dialled, message, next_frame, streaming
from tests.transports.websocket.serving import connected, eventually

pytestmark = pytest.mark.storage


def end_wish(rpc_id: Any, **more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": "stream/end", "params": {"id": rpc_id}, **more})


async def answer_to(client: ClientConnection, rpc_id: Any) -> Any:
    """Return the next frame with the id."""
    while (frame := await next_frame(client)).get("id") != rpc_id:
        pass
    return frame


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("no JSON", -32700),
        ("", -32700),
        ("{}", -32600),
        ("[]", -32600),
        ("3", -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "nope"}', -32601),
        (call(1, "GetTask", {}), -32602),
        (call(1, "GetTask", {"id": "t"}, **{"A2A-Version": "7.7"}), -32009),
        (call(1, "GetTask", {"id": "t"}, **{"A2A-Version": 1}), -32600),
        (call(1, "GetTask", {"id": "t"}, afterSequence="7"), -32600),
        (call(1, "GetTask", {"id": "t"}, afterSequence=-1), -32600),
        (call(1, "GetTask", {"id": "t"}, afterSequence=True), -32600),
        (json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetTask", PARAMETERS: []}), -32600),
        (call(1, "GetTask", {"id": "t"}, **{"X-Budget-USD": "9", "x-budget-usd": "0.5"}), -32600),
        (end_wish([1], id=1), -32602),
        (end_wish(None, id=1), -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "stream/end"}', -32602),
    ],
)
async def test_a_bad_frame_is_refused_and_the_next_one_answered(server: Server, frame: str, code: int) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(frame)
        answer = await next_frame(client)
        assert (answer["jsonrpc"], answer["error"]["code"]) == ("2.0", code)
        await client.send(call("next", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == "next"


async def test_a_number_in_quotes_is_called_a_string(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(call(1, "GetTask", {"id": "t"}, afterSequence="7"))
        assert (await next_frame(client))["error"]["message"].endswith("event you have seen; it is a string")
        await client.send(call(2, "GetTask", {"id": "t"}, afterSequence=-1))
        assert (await next_frame(client))["error"]["message"].endswith("event you have seen")


@pytest.mark.requirement("ACP-16")
async def test_calls_and_streams_share_one_socket(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(streaming("s", "gate", id="shared"))
        first = await next_frame(client)
        assert (first["id"], first["sequence"]) == ("s", 1)
        for number in range(20):
            await client.send(call(number, "GetTask", {"id": first["result"]["task"]["id"]}))
        await client.send(json.dumps([json.loads(call(one, "GetTask", {"id": "none"})) for one in ("a", "b")]))
        answers: set[Any] = set()
        while len(answers) < 21:
            frame = await next_frame(client)
            if isinstance(frame, list):
                answers.add(tuple(member["id"] for member in frame))
            elif frame["id"] != "s":
                answers.add(frame["id"])
        assert answers == {*range(20), ("a", "b")}


async def test_a_client_ends_one_stream_and_keeps_the_others(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        for name in ("one", "two"):
            await client.send(streaming(name, "gate", id=f"ends {name}"))
        tasks: dict[str, str] = {}
        while len(tasks) < 2:
            frame = await next_frame(client)
            if "task" in frame["result"]:
                tasks[frame["id"]] = frame["result"]["task"]["id"]
        await client.send(end_wish("one", id="wish"))
        frames = []
        while not any(frame.get("method") for frame in frames) or not any(
            frame.get("id") == "wish" for frame in frames
        ):
            frames.append(await next_frame(client))
        (wish,) = [frame for frame in frames if frame.get("id") == "wish"]
        assert wish["result"] == {"ended": True}
        (end,) = [frame for frame in frames if "method" in frame]
        assert end == {
            "jsonrpc": "2.0",
            "method": "stream/end",
            "params": {"id": "one", "reason": "asked", "resume": False},
        }
        stop = message("stop", id="ends two: stop", taskId=tasks["two"])
        await client.send(call("stop", "SendMessage", {"message": stop}))
        seen = {}
        while "method" not in seen:
            seen = await next_frame(client)
            assert seen.get("id") != "one"
        assert seen["params"] == {"id": "two", "reason": "done", "resume": False}
        await client.send(end_wish("two", id="late"))
        assert (await answer_to(client, "late"))["result"] == {"ended": False}
        await client.send(call("one", "GetTask", {"id": tasks["one"]}))
        assert (await answer_to(client, "one"))["result"]["status"]["state"] == "TASK_STATE_WORKING"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_stream_that_is_ended_before_it_begins_has_one_event(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = WebSocket._stream

    async def begin_late(socket: WebSocket, reply: Reply, stream: Stream) -> None:
        await eventually(lambda: bool(socket.unwanted))
        await begin(socket, reply, stream)

    monkeypatch.setattr(WebSocket, "_stream", begin_late)
    async with connected(owner) as (client, _):
        await client.send(streaming("s", "gate", id="ends early"))
        await client.send(end_wish("s", id="wish"))
        assert (await next_frame(client))["result"] == {"ended": True}
        task = (await next_frame(client))["result"]["task"]["id"]
        assert (await next_frame(client))["params"] == {"id": "s", "reason": "asked", "resume": False}
        await client.send(call("s", "GetTask", {"id": task}))
        assert (await next_frame(client))["result"]["id"] == task


async def test_a_wish_to_end_a_call_that_does_not_stream_changes_nothing(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        sent = message(id="waits for its end")
        await client.send(call("waits", "SendMessage", {"message": sent, "metadata": {"agent": "gate"}}))
        await client.send(end_wish("waits", id="wish"))
        answer = await next_frame(client)
        assert (answer["id"], answer["result"]) == ("wish", {"ended": False})


async def test_an_id_in_flight_is_refused_until_its_answer(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(streaming("s", "gate", id="in flight"))
        await next_frame(client)
        await client.send(call("s", "GetTask", {"id": "none"}))
        frame = await next_frame(client)
        while frame.get("id") == "s":
            frame = await next_frame(client)
        assert (frame["id"], frame["error"]["code"]) == (None, -32600)
        assert "in flight" in frame["error"]["message"]
        for _ in range(3):
            await client.send(call(7, "GetTask", {"id": "none"}))
            while (await next_frame(client))["id"] != 7:
                pass


async def test_a_lost_connection_resumes_with_every_event_once(server: Server) -> None:
    seen: list[Any] = []
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(streaming("s", "chatty", id="resumed"))
        seen += [await next_frame(client) for _ in range(3)]
        client.transport.abort()
    task_id = seen[0]["result"]["task"]["id"]
    wish = call(2, "SubscribeToTask", {"id": task_id}, afterSequence=seen[-1]["sequence"])
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(wish)
        again = [await next_frame(client)]
        while "method" not in again[-1]:
            again.append(await next_frame(client))
    assert again[0]["sequence"] == seen[-1]["sequence"]
    numbers = [frame["sequence"] for frame in (*seen, *again[1:-1])]
    assert numbers == list(range(1, len(numbers) + 1))
    async with dialled(server.url, **bearer(server.stranger)) as client:
        await client.send(wish)
        assert (await next_frame(client))["error"]["code"] == -32001


async def test_a_colleague_and_a_stranger_see_nothing_of_a_task(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(call(1, "SendMessage", {"message": message(id="private")}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
    for key in (server.colleague, server.stranger):
        async with dialled(server.url, **bearer(key)) as client:
            for method in ("GetTask", "SubscribeToTask", "CancelTask"):
                await client.send(call(method, method, {"id": task_id}))
                assert (await next_frame(client))["error"]["code"] == -32001


async def test_the_answers_name_their_version_and_extensions(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(call(1, "GetTask", {"id": "none"}))
        assert (await next_frame(client))[PARAMETERS] == {"A2A-Version": "1.0"}
        await client.send('{"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"id": "none"}}')
        assert (await next_frame(client))[PARAMETERS] == {"A2A-Version": "0.3"}


@pytest.mark.django_db(transaction=True)
async def test_too_many_calls_at_once_are_refused(owner: Person, service: None, settings: Any) -> None:
    settings.A2A_SOCKET_CALLS = 2
    async with connected(owner, "/agents/waits/ws") as (client, _):
        await client.send(streaming("stream", "waits", id="stream"))
        await next_frame(client)
        for name in ("one", "two", "three"):
            await client.send(call(name, "SendMessage", {"message": message(id=name)}))
        frame = await next_frame(client)
        while frame["id"] == "stream":
            frame = await next_frame(client)
        assert (frame["id"], frame["error"]["code"]) == ("three", -38008)
        await client.send(end_wish("stream", id="wish"))
        assert (await answer_to(client, "wish"))["result"] == {"ended": True}, "a stream can be ended at the limit"


@pytest.mark.django_db(transaction=True)
async def test_a_stream_ends_with_its_socket(owner: Person, service: None) -> None:
    async with connected(owner) as (client, _):
        await client.send(streaming("s", "asks-credentials"))
        await next_frame(client)
        assert {kind for kind, _, _ in holdings(account)} == {"sockets", "streams"}
        await client.close()
        await eventually(lambda: not holdings(account))


def test_the_page_has_each_service_parameter() -> None:
    page = (ROOT / "docs/websocket.md").read_text()
    table = page.partition("| Service parameter |")[2].partition("\n\n")[0]
    for name in (VERSION_HEADER, HEADER, OLD_HEADER, AFTER, BUDGET):
        assert f"`{name}`" in table


async def test_a_budget_in_a_frame_is_read(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        await client.send(call(1, "SendMessage", {"message": message(id="budget")}, **{BUDGET: "cheap"}))
        assert BUDGET in (await answer_to(client, 1))["error"]["message"]
