"""Leases: a frozen worker loses its task and cannot harm it, a live one keeps all of its own."""

import asyncio
from signal import SIGCONT, SIGSTOP

import pytest

from tests.faults.clients import PATIENCE, TERMINAL, assert_whole, client, listening
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import TAKE_OVER_SECONDS, Node, holder

pytestmark = pytest.mark.fault


async def test_a_frozen_worker_writes_nothing_after_its_lease(pair: tuple[Node, Node], postgres: str) -> None:
    async with client(pair[0]) as caller:
        task_id = await caller.send("story", pause=0.12, words=1)
        await caller.state(task_id, "TASK_STATE_WORKING")
    zombie, other = holder(postgres, task_id, pair)
    async with client(other) as caller, listening(caller, "SubscribeToTask", {"id": task_id}, after=1) as follower:
        await follower.count(6)
        zombie.tell(SIGSTOP)
        await follower.until(lambda seen: seen.began_again(5), TAKE_OVER_SECONDS)
        zombie.tell(SIGCONT)  # Both workers are in the middle of their chunks.
        await follower.end()
        assert assert_whole(follower.frames) == await caller.get(task_id)
    async with client(zombie) as caller:
        assert await caller.get(task_id) == await seen_from(other, task_id)
        assert (await caller.http.get(f"{zombie.base}/readyz")).json() == {"status": "ok", "reasons": []}
    task = await other.shown(task_id)
    fences = [event["fence"] for event in task["events"] if event["actor"] == "agent"]
    assert set(fences) == {1, 2}
    assert fences == sorted(fences)
    assert [run["outcome"] for run in task["runs"]] == ["lost", "completed"]
    assert "its result is dropped" in zombie.log or "stopped" in zombie.log


async def test_a_worker_that_wakes_after_the_end_adds_nothing(pair: tuple[Node, Node], postgres: str) -> None:
    async with client(pair[0]) as caller:
        task_id = await caller.send("story", pause=1, words=14)
        await caller.state(task_id, "TASK_STATE_WORKING")
    zombie, other = holder(postgres, task_id, pair)
    zombie.tell(SIGSTOP)
    async with client(other) as caller:
        ended = await caller.state(task_id, "TASK_STATE_COMPLETED", TAKE_OVER_SECONDS + PATIENCE)
    zombie.tell(SIGCONT)
    async with client(zombie) as caller:
        await caller.http.get(f"{zombie.base}/healthz")
        await asyncio.sleep(4)  # Time for two chunks and a heartbeat of the frozen worker.
        assert await caller.get(task_id) == ended
    task = await other.shown(task_id)
    events = task["events"]
    assert task["fence"] == 2, "the first one was frozen before its end"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert sum(f"TASK_STATE_{(event['state'] or '').upper()}" in TERMINAL for event in events) == 1


@pytest.mark.slow
async def test_a_hundred_sleeping_agents_keep_their_leases(start: Start) -> None:
    node = await start(**SHORT)
    async with client(node) as caller:
        ids = await asyncio.gather(*(caller.send("sleeper", seconds=15) for _ in range(100)))
        await caller.completed(100)
    tasks = await node.lines("tasks", "list", "--agent", "sleeper")
    assert {task["id"] for task in tasks} == set(ids)
    assert {(task["state"], task["fence"], task["attempt"]) for task in tasks} == {("completed", 1, 1)}


@pytest.mark.slow
async def test_a_lone_process_goes_on_with_its_runs_after_the_machine_has_slept(start: Start) -> None:
    node = await start(**SHORT | {"A2A_LEASE_SECONDS": "2"})
    async with client(node) as caller:
        ids = [await caller.send("once", seconds=16) for _ in range(5)]
        for task_id in ids:
            await caller.state(task_id, "TASK_STATE_WORKING")
        for _ in range(4):
            node.tell(SIGSTOP)
            await asyncio.sleep(2.5)  # Longer than a lease.
            node.tell(SIGCONT)
            await asyncio.sleep(1)  # Two sweeps, which look for lost workers.
        for task_id in ids:
            await caller.state(task_id, "TASK_STATE_COMPLETED", 60)


async def seen_from(node: Node, task_id: str) -> dict[str, object]:
    async with client(node) as caller:
        return await caller.get(task_id)
