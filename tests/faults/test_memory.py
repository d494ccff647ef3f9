"""Clients that do not read, and clients that leave."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, Client, client, deaf, envelope, inputs, listening, silent
from tests.faults.conftest import Start
from tests.faults.nodes import Node

pytestmark = pytest.mark.fault
VOLUME, SIZE = 18_000_000, 16_384
"""Bytes that an agent says in all, and in one chunk."""
MEGABYTE = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("size", [SIZE, 16 * SIZE], ids=["small events", "large events"])
async def test_a_client_that_does_not_read_costs_no_memory_and_holds_up_nobody(start: Start, size: int) -> None:
    node = await start(A2A_TASK_CHARACTERS=str(2 * VOLUME))
    async with client(node) as caller:
        task_id = await caller.send("chatty", chunks=VOLUME // size, size=size)
        await caller.completed(1)
    assert await node.stop() == 0
    await node.start()  # A new process, without the memory that the events took.
    async with client(node) as caller:
        await warm(caller)
        before = node.rss()
        with silent(node, task_id):
            most = 0
            for _ in range(15):
                await caller.result("ListTasks", {"pageSize": 1})  # It is answered within the patience of the caller.
                most = max(most, node.rss())
                await asyncio.sleep(0.1)
            assert most - before < 20 * MEGABYTE
            assert [row["outcome"] for row in await subscriptions(node, task_id)] == [""]
        told = await ending(node, task_id, "SubscribeToTask")  # They have left.
        assert told["outcome"] == "stream"
        assert 0 < told["frames"] < VOLUME // size
        async with listening(caller, "SubscribeToTask", {"id": task_id}, after=1) as listener:
            await listener.end()
    assert [frame.id for frame in listener.frames] == list(range(1, listener.last_id + 1))
    assert listener.frames[-1].state == "TASK_STATE_COMPLETED"


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["sent again", "waiting"])
async def test_clients_that_do_not_read_one_large_answer_share_the_memory_of_their_owner(
    start: Start, waits: bool
) -> None:
    chunks, number = 500, 40
    node = await start(A2A_SWEEP_SECONDS="0.5")
    said = inputs(chunks=chunks, size=SIZE, pause=0.005)
    wish = envelope("SendMessage", {"message": said})
    async with client(node) as caller:
        await caller.send("chatty", chunks=1, size=SIZE)
        await warm(caller)
        first = {"message": said, "configuration": {"returnImmediately": True}}
        task_id = (await caller.result("SendMessage", first, agent="chatty"))["task"]["id"]
        if not waits:
            await caller.completed(3)
        before = most = node.rss()
        with ExitStack() as clients:
            for _ in range(number):
                clients.enter_context(deaf(node, wish, path="/agents/chatty/jsonrpc"))
            for _ in range(30):
                await caller.result("ListTasks", {"pageSize": 1})
                most = max(most, node.rss())
                await asyncio.sleep(0.25)
        assert most - before < number * chunks * SIZE // 4
        await caller.state(task_id, "TASK_STATE_COMPLETED")


async def test_an_agent_whose_client_does_not_read_goes_on_to_its_end(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        task_id = await caller.send("chatty", chunks=400, size=SIZE, pause=0.002)
        await caller.state(task_id, "TASK_STATE_WORKING")
        with silent(node, task_id):
            await caller.completed(1)


@pytest.mark.parametrize("batch", [False, True], ids=["one call", "a batch"])
async def test_a_send_whose_client_leaves_stops_waiting_and_its_task_goes_on(
    start: Start, tmp_path: Path, batch: bool
) -> None:
    node, gate = await start(), tmp_path / "open"
    calls = [
        envelope("SendMessage", {"message": inputs(seconds=300, until=str(gate))}, rpc_id=number)
        for number in range(1 + batch)
    ]
    async with client(node) as caller:
        sending = asyncio.create_task(
            caller.http.post(caller.url("sleeper"), content=b"[%b]" % b",".join(calls) if batch else calls[0])
        )
        wish = {"status": "TASK_STATE_WORKING"}
        async with asyncio.timeout(PATIENCE):
            while len(tasks := (await caller.result("ListTasks", wish))["tasks"]) < len(calls):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        for task in tasks:
            ended = await ending(node, task["id"], "SendMessage")
            assert (ended["outcome"], ended["http_status"]) == ("left", None)
        gate.touch()
        for task in tasks:
            await caller.state(task["id"], "TASK_STATE_COMPLETED")


async def ending(node: Node, task_id: str, method: str) -> dict[str, Any]:
    """Return the exchange of that method about the task, once it has an outcome."""
    async with asyncio.timeout(2 * PATIENCE):
        while True:
            for row in await node.lines("exchanges", task_id):
                if row["method"] == method and row["outcome"]:
                    return row
            await asyncio.sleep(0.1)


async def subscriptions(node: Node, task_id: str) -> list[dict[str, Any]]:
    """Return the exchanges of subscriptions to the task; one that is open has no outcome."""
    return [row for row in await node.lines("exchanges", task_id) if row["method"] == "SubscribeToTask"]


async def warm(caller: Client) -> None:
    """Let first calls load what they load, which is no cost of readers."""
    small = await caller.send("chatty", chunks=200, size=SIZE)
    await caller.completed(2)
    async with listening(caller, "SubscribeToTask", {"id": small}, after=1) as listener:
        await listener.end()
