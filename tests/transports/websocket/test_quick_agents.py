"""Quick agents over WebSocket whose own time limits and cancellations reach the asyncio task of their call."""

import asyncio
import json
from typing import Any

import pytest

from a2a.agents import agent
from a2a.run import Run
from tasks_app.runner import quick
from tests.conftest import PATIENCE, Person
from tests.transports.websocket.door import call, message, next_frame
from tests.transports.websocket.serving import connected

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
    """Cancels the asyncio task in which it runs."""
    task = asyncio.current_task()
    assert task
    task.cancel()
    await asyncio.sleep(PATIENCE)


def sending(rpc_id: str, name: str) -> str:
    return call(rpc_id, "SendMessage", {"message": message(id=rpc_id), "metadata": {"agent": name}})


def state(answer: Any) -> str:
    return str(answer["result"]["task"]["status"]["state"])


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


async def test_the_id_of_a_call_that_its_agent_cancels_is_free_again(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await client.send(sending("same", "cancels-its-task"))
        await client.send(call("other", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == "other"
        await client.send(call("same", "GetTask", {"id": "none"}))
        assert (await next_frame(client))["error"]["code"] == -32001
