"""Quick agents over WebSocket: their time limits and cancellations reach the asyncio task of their call."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from a2a.agents import agent
from a2a.run import Run
from tasks_app.asgi.handler import LeanHandler
from tasks_app.event_log.readers import readers
from tasks_app.runner import quick
from tasks_app.transports.call import Reply
from tasks_app.transports.websocket import WebSocket
from tests.conftest import PATIENCE, Person
from tests.transports.websocket.door import call, message, next_frame
from tests.transports.websocket.serving import connected, eventually, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@agent(quick=True)
async def tidies_up_within_a_limit(run: Run) -> None:
    """Has a time limit for what it does at its end."""
    try:
        await asyncio.sleep(PATIENCE)
    finally:
        async with asyncio.timeout(quick.GRACE / 2):
            await asyncio.sleep(PATIENCE)


@agent(quick=True)
async def has_a_longer_limit(run: Run) -> None:
    """Has a time limit that ends while it tidies up."""
    async with asyncio.timeout(quick.LIMIT + quick.GRACE / 2):
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await asyncio.sleep(PATIENCE)


@agent(quick=True)
async def cancels_its_task(run: Run) -> None:
    """Has a callback cancel the asyncio task in which it runs."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.sleep(PATIENCE)


@agent(quick=True)
async def is_cancelled_by_the_end_of_the_server(run: Run) -> None:
    """Has its asyncio task cancelled while the server ends."""
    readers.draining = True
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.sleep(PATIENCE)


STEPS: list[str] = []
"""The steps of an agent whose caller leaves."""
ENDS: list[asyncio.Event] = []
"""The event after which that agent ends."""


@agent(quick=True)
async def notes_its_end(run: Run) -> None:
    """Notes whether it ends by itself."""
    STEPS.append("begin")
    try:
        await ENDS[0].wait()
        STEPS.append("end")
    except asyncio.CancelledError:
        STEPS.append("cancelled")
        raise


@pytest.fixture
async def may_end() -> asyncio.Event:
    """Return the event after which the agent ends whose caller leaves."""
    STEPS.clear()
    ENDS[:] = [asyncio.Event()]
    return ENDS[0]


def sending(rpc_id: str, name: str) -> str:
    return call(rpc_id, "SendMessage", {"message": message(id=rpc_id), "metadata": {"agent": name}})


def state(answer: Any) -> str:
    return str(answer["result"]["task"]["status"]["state"])


def expect_logged_fault(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Expect an answer with the error of a fault, and a line of the log with its reference."""
    error = answer["error"]
    assert error["code"] == -32603
    assert f"reference {error['data'][0]['metadata']['reference']}" in caplog.text


@pytest.mark.parametrize("name", ["tidies-up-within-a-limit", "has-a-longer-limit"])
async def test_an_agent_with_a_time_limit_of_its_own_is_answered_for(
    owner: Person, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(quick, "LIMIT", 0.2)
    async with connected(owner) as (client, _):
        await client.send(sending("alone", name))
        assert state(await next_frame(client)) == "TASK_STATE_FAILED"
        members = [sending("one", name), sending("two", "form-coroutine")]
        await client.send(json.dumps([json.loads(member) for member in members]))
        answers = await next_frame(client)
        assert {answer["id"]: state(answer) for answer in answers} == {
            "one": "TASK_STATE_FAILED",
            "two": "TASK_STATE_COMPLETED",
        }


async def test_a_call_on_a_socket_that_its_agent_cancels_is_answered_and_logged(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(owner) as (client, _):
        one = sending("one", "cancels-its-task")
        for frame in (one, f"[{one}]", one):
            await client.send(frame)
            answer = await next_frame(client)
            expect_logged_fault(answer[0] if isinstance(answer, list) else answer, caplog)


async def test_a_call_on_a_socket_that_is_cancelled_as_the_server_ends_is_no_fault(
    owner: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(readers, "draining", False)  # Undone at the end of the test.
    async with connected(owner) as (client, _):
        await client.send(sending("one", "is-cancelled-by-the-end-of-the-server"))
        await client.send(call("other", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == "other"
    assert "CancelledError" not in caplog.text


async def test_the_id_of_a_call_that_is_cancelled_behind_its_agent_is_free_again(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = WebSocket._answer

    async def cancel_the_first(socket: WebSocket, reply: Reply) -> None:
        if reply.wrapping.id == "same":
            monkeypatch.undo()
            raise asyncio.CancelledError
        await answer(socket, reply)

    monkeypatch.setattr(WebSocket, "_answer", cancel_the_first)
    async with connected(owner) as (client, _):
        await client.send(call("same", "GetTask", {"id": "none"}))
        await client.send(call("other", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == "other"
        await client.send(call("same", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["error"]["code"] == -32001


async def test_a_call_over_http_that_its_agent_cancels_is_answered_and_logged(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    async with serving({"http": LeanHandler()}) as server, httpx.AsyncClient(headers=headers) as client:
        one = sending("one", "cancels-its-task")
        for body in (one, f"[{one}]"):
            answer = (await client.post(f"{url(server)}/jsonrpc", content=body)).json()
            expect_logged_fault(answer[0] if isinstance(answer, list) else answer, caplog)


async def test_an_agent_is_cancelled_when_its_caller_leaves_a_socket(
    owner: Person, may_end: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(owner) as (client, _):
        await client.send(sending("left", "notes-its-end"))
        await eventually(lambda: STEPS == ["begin"])
    assert STEPS == ["begin", "cancelled"]
    assert "CancelledError" not in caplog.text


async def test_an_agent_runs_to_its_end_when_its_caller_leaves_http(
    owner: Person, may_end: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "LIMIT", PATIENCE)
    headers = {"Authorization": f"Bearer {owner.key}", "A2A-Version": "1.0", "Content-Type": "application/json"}
    async with serving({"http": LeanHandler()}) as server, httpx.AsyncClient(headers=headers) as client:
        calling = asyncio.ensure_future(client.post(f"{url(server)}/jsonrpc", content=sending("left", "notes-its-end")))
        await eventually(lambda: STEPS == ["begin"])
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await eventually(lambda: not server.server_state.connections)
        may_end.set()
        await eventually(lambda: len(STEPS) > 1)
    assert STEPS == ["begin", "end"]
