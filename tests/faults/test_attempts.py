"""Attempts: how often an agent is called when its process ends, and what its task says afterwards."""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.clients import PATIENCE, Client, client
from tests.faults.conftest import Plant
from tests.faults.nodes import TAKE_OVER_SECONDS, Node

pytestmark = pytest.mark.fault
TASKS = 10


async def at_work(plant: Plant, agent: str) -> tuple[Node, list[str], Path]:
    """Return a web whose tasks are all at work when their only worker is told to go; it has gone when this returns."""
    web, worker = await plant.web(), await plant.worker()
    file = plant.folder / "calls"
    async with client(web) as caller:
        sent = [await caller.send(agent, file=str(file)) for _ in range(TASKS)]
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_WORKING")
        async with asyncio.timeout(PATIENCE):
            while len(calls(file)) < TASKS:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)
    assert await worker.stop(signal.SIGTERM) == 0
    return web, sent, file


class Call(NamedTuple):
    """A call of an agent, as the agent wrote it down."""

    task_id: str
    attempt: int
    at: float
    """On the clock of this machine."""


def calls(file: Path) -> list[Call]:
    """Return the calls of agents, in their order."""
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    return [Call(task_id, int(attempt), float(at)) for task_id, attempt, at in map(str.split, lines)]


def counted(file: Path) -> Counter[tuple[str, int]]:
    """Count how often each task was called as which attempt."""
    return Counter((call.task_id, call.attempt) for call in calls(file))


async def sentence(caller: Client, task_id: str) -> str:
    (part,) = (await caller.get(task_id))["status"]["message"]["parts"]
    return str(part["text"])


async def test_an_agent_tried_once_is_called_once_whatever_a_deploy_interrupts(plant: Plant) -> None:
    web, sent, file = await at_work(plant, "counted")
    await plant.worker()
    async with client(web) as caller:
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_FAILED")
            assert await sentence(caller, task_id) == (
                "The agent was interrupted by a restart of the server, and it is tried once only. "
                "Define it with attempts=2 to have it called again."
            )
        # The worker has claimed since.
        await caller.state(await caller.send("once", seconds=0), "TASK_STATE_COMPLETED")
    assert counted(file) == Counter((task_id, 1) for task_id in sent)
    for task_id in sent:
        task = await web.shown(task_id)
        assert (task["fence"], task["attempt"], [run["outcome"] for run in task["runs"]]) == (1, 1, ["interrupted"])


async def test_an_agent_with_three_attempts_is_called_again_after_a_deploy(plant: Plant) -> None:
    web, sent, file = await at_work(plant, "counted-thrice")
    async with client(web) as caller:
        for task_id in sent:
            assert (await caller.get(task_id))["status"]["state"] == "TASK_STATE_SUBMITTED"
            assert "restart of the server in attempt 1 of 3" in await sentence(caller, task_id)
        await plant.worker()
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert counted(file) == Counter((task_id, number) for task_id in sent for number in (1, 2))
    for task_id in sent:
        task = await web.shown(task_id)
        assert (task["attempt"], [run["outcome"] for run in task["runs"]]) == (2, ["interrupted", "completed"])


@pytest.mark.slow
async def test_an_agent_that_kills_its_process_is_called_as_often_as_it_may_be(plant: Plant) -> None:
    web, file = await plant.web(), plant.folder / "calls"
    await plant.worker("--queues", "cpu", "--processes", "1")
    async with client(web) as caller:
        task_id = await caller.send("poison", file=str(file))
        await caller.state(task_id, "TASK_STATE_FAILED", 3 * TAKE_OVER_SECONDS)
        assert await sentence(caller, task_id) == (
            "The worker was lost while the agent was at work in the last of its 3 attempts."
        )
        await caller.state(await caller.send("burns", seconds=0), "TASK_STATE_COMPLETED")
    assert [call.attempt for call in calls(file)] == [1, 2, 3]
    assert [run["outcome"] for run in (await web.shown(task_id))["runs"]] == ["lost"] * 3


async def test_an_error_that_passes_is_tried_again_right_after_its_pause(plant: Plant) -> None:
    web, file = await plant.web(A2A_SWEEP_SECONDS="60"), plant.folder / "calls"
    await plant.worker(A2A_SWEEP_SECONDS="60")
    async with client(web) as caller:
        task_id = await caller.send("falters", file=str(file))
        await caller.state(task_id, "TASK_STATE_COMPLETED")
    first, second, third = [call.at for call in calls(file)]
    assert second - first > 0.8
    assert third - second > 1.6
    task = await web.shown(task_id)
    assert (task["attempt"], [run["outcome"] for run in task["runs"]]) == (3, ["failed", "failed", "completed"])
    assert task["not_before"] is None
