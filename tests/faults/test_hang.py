"""Agents that hang: what they do to their process costs nobody else."""

import asyncio
import time
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, TERMINAL, Client, client
from tests.faults.conftest import Plant, Start

pytestmark = pytest.mark.fault


async def ended(caller: Client, task_id: str, seconds: float = PATIENCE) -> dict[str, Any]:
    """The task, once it has ended."""
    async with asyncio.timeout(seconds):
        while True:
            task = await caller.get(task_id)
            if state(task) in TERMINAL:
                return task
            await asyncio.sleep(0.05)


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"])


def words(task: dict[str, Any]) -> str:
    return str(task["status"]["message"]["parts"][0]["text"])


def pid_of(task: dict[str, Any]) -> int:
    return int(task["artifacts"][0]["parts"][0]["data"]["pid"])


async def test_hung_sync_agents_keep_their_slots_and_cost_no_other_task(plant: Plant) -> None:
    web, ill = await plant.web(), await plant.worker(A2A_SYNC_SLOTS="8")
    async with client(web) as caller:
        hung = [await caller.send("hung") for _ in range(8)]
        for task_id in hung:
            task = await ended(caller, task_id)
            assert words(task) == "The agent took longer than its timeout of 1 s."
        early = [await caller.send("brief") for _ in range(20)]
        awake = await caller.send("sleeper", seconds=0)
        assert state(await ended(caller, awake)) == "TASK_STATE_COMPLETED", "async agents go on there"
        assert {state(await caller.get(task_id)) for task_id in early} == {"TASK_STATE_SUBMITTED"}
        healthy = await plant.worker(A2A_SYNC_SLOTS="8")
        sent = early + [await caller.send("brief") for _ in range(40)]
        tasks = [await ended(caller, task_id) for task_id in sent]
    assert [state(task) for task in tasks] == ["TASK_STATE_COMPLETED"] * 60
    assert {pid_of(task) for task in tasks} == {healthy.pid} != {ill.pid}
    for task_id in hung:
        assert [run["outcome"] for run in (await web.shown(task_id))["runs"]] == ["failed"]


async def test_a_thread_that_comes_back_is_used_again_and_its_late_words_are_refused(start: Start) -> None:
    node = await start(A2A_SYNC_SLOTS="1", A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5")
    async with client(node) as caller:
        late = await caller.send("hung", seconds=4)
        assert state(await ended(caller, late)) == "TASK_STATE_FAILED"
        began = time.monotonic()
        assert state(await ended(caller, await caller.send("brief"))) == "TASK_STATE_COMPLETED"
        assert time.monotonic() - began > 1, "it waited for the thread"
        task = await caller.get(late)
    assert (state(task), task.get("artifacts")) == ("TASK_STATE_FAILED", None)


async def test_who_blocks_an_event_loop_delays_no_run_of_another_agent(start: Start, record_property: Any) -> None:
    node = await start(A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5")
    async with client(node) as caller:
        early = [await caller.send("sleeper", seconds=3) for _ in range(50)]
        for task_id in early[-1:]:
            await caller.state(task_id, "TASK_STATE_WORKING")
        blocked = await caller.send("blocker", seconds=9)
        await caller.state(blocked, "TASK_STATE_WORKING")
        began = time.monotonic()
        late = [await caller.send("sleeper", seconds=1) for _ in range(50)]
        tasks = [await ended(caller, task_id) for task_id in [*early, *late]]
        took = time.monotonic() - began
        assert state(await caller.get(blocked)) == "TASK_STATE_WORKING", "it is at it still"
        assert [state(task) for task in tasks] == ["TASK_STATE_COMPLETED"] * 100
        record_property("seconds for 100 runs of up to 3 s beside a blocked loop", round(took, 1))
        assert took < 3 + 3 * 2, "none is late by more than two seconds, and some slack"
        assert state(await ended(caller, blocked)) == "TASK_STATE_COMPLETED"
    task = await node.shown(blocked)
    assert [run["outcome"] for run in task["runs"]] == ["completed"], "nobody else has taken it up"
