"""kill -9 in the middle of a batch: each item has one task and one result, and the results keep their order."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.clients import PATIENCE, Client, Listener, client, listening, state
from tests.faults.conftest import Plant
from tests.faults.nodes import Node

pytestmark = pytest.mark.fault
AGENTS = {"A2A_AGENT_MODULES": "tests.faults.sparc_agents"}
ITEMS, FEW = 500, 40
REPORTS = 20
"""The most reports of progress, as docs/systems/sparc-batches.md says."""


def gate(plant: Plant) -> Path:
    """Return the file that lets the second half of a batch end."""
    return plant.folder / "open"


async def execute(caller: Client, items: int, until: Path) -> str:
    """Return the task of a new batch, each of whose items has its number. The second half waits for a file."""
    messages = [
        {
            "role": "user",
            "messageId": "any",
            "parts": [
                {"kind": "data", "data": {"number": number, "until": str(until) if number >= items // 2 else ""}}
            ],
        }
        for number in range(items)
    ]
    params = {
        "operation": "piece",
        "tasks": [{"message": message} for message in messages],
        "configuration": {"maxConcurrent": 20, "batchSize": 20},
    }
    return str((await caller.result("batchtools/execute", params))["id"])


def results(listener: Listener) -> list[dict[str, Any]]:
    """Return the results that a follower has seen, in the order of its events."""
    updates = [frame.result["artifactUpdate"] for frame in listener.frames if "artifactUpdate" in frame.result]
    return [part["data"] for update in updates for part in update["artifact"]["parts"]]


def reports(listener: Listener) -> list[dict[str, int]]:
    """Return the reports of progress that a follower has seen."""
    updates = [frame.result["statusUpdate"]["status"] for frame in listener.frames if "statusUpdate" in frame.result]
    return [one["message"]["metadata"]["progress"] for one in updates if "message" in one]


def rows(plant: Plant, query: str) -> list[Any]:
    with psycopg.connect(plant.settings["DATABASE_URL"]) as connection:
        return connection.execute(query.encode()).fetchall()


def assert_one_result_each(plant: Plant, batch_id: str, found: list[dict[str, Any]]) -> None:
    """Check the results against the numbers of the items, and against the tasks in the database."""
    assert [one["index"] for one in found] == list(range(len(found)))
    assert {one["state"] for one in found} == {"completed"}
    assert [one["output"] for one in found] == [[f"{number} begun, {number} ended"] for number in range(len(found))]
    tasks = rows(plant, "select id from tasks_app_task where agent = 'piece'")
    assert sorted(one["taskId"] for one in found) == sorted(task_id for (task_id,) in tasks)
    assert len(tasks) == len(found)
    assert rows(plant, f"select due_at, cursor from tasks_app_batch where id = '{batch_id}'") == [(None, len(found))]  # noqa: S608


def assert_progress_grows(seen: list[dict[str, int]], items: int) -> None:
    ends = [one["ended"] for one in seen]
    assert ends == sorted(set(ends))
    assert 2 <= len(ends) <= REPORTS + 1
    assert seen[-1] == {"total": items, "ended": items, "failed": 0}
    assert {one["total"] for one in seen} == {items}


async def freeze_at_work(plant: Plant, victim: Node) -> None:
    """Freeze a process while it runs an item of the batch: between two groups of items it has none."""
    process = victim.process
    assert process
    query = f"select 1 from tasks_app_task where agent = 'piece' and lease_owner like '%:{process.pid}:%'"  # noqa: S608
    async with asyncio.timeout(PATIENCE):
        while True:
            victim.tell(signal.SIGSTOP)
            if await asyncio.to_thread(rows, plant, query):
                return
            victim.tell(signal.SIGCONT)
            await asyncio.sleep(0.01)


async def killed(plant: Plant, victim: Node, caller: Client, batch_id: str, *, at_work: bool = False) -> Listener:
    """Kill a process when a tenth of a batch has results, and return what a follower has seen at the end. With
    `at_work` the process runs an item then."""
    async with listening(caller, "SubscribeToTask", {"id": batch_id}, after=1) as listener:
        await listener.until(lambda seen: len(results(seen)) >= ITEMS // 10, PATIENCE)
        assert len(results(listener)) < ITEMS
        if at_work:
            await freeze_at_work(plant, victim)
        victim.kill()
        gate(plant).touch()
        await listener.end(2 * PATIENCE)
    assert listener.broke is None
    return listener


@pytest.mark.long
@pytest.mark.requirement("SPARC-08", "SPARC-15")
async def test_500_items_over_two_workers_have_one_result_each_when_one_is_killed(plant: Plant) -> None:
    web = await plant.web(**AGENTS)
    victim, _ = await plant.worker(**AGENTS), await plant.worker(**AGENTS)
    async with client(web) as caller:
        batch_id = await execute(caller, ITEMS, gate(plant))
        listener = await killed(plant, victim, caller, batch_id, at_work=True)
        task = await caller.get(batch_id)
    assert state(task) == "TASK_STATE_COMPLETED"
    assert_one_result_each(plant, batch_id, results(listener))
    assert_progress_grows(reports(listener), ITEMS)
    lost = rows(plant, "select count(*) from tasks_app_run where outcome = 'lost'")
    assert lost[0][0] > 0, "the killed worker was at work"


@pytest.mark.slow
@pytest.mark.requirement("SPARC-08", "SPARC-15")
async def test_the_batch_of_a_killed_server_goes_on_in_another(plant: Plant) -> None:
    victim, other = await plant.web(**AGENTS), await plant.web(**AGENTS)
    await plant.worker(**AGENTS)
    async with client(victim) as caller, client(other) as follower:
        batch_id = await execute(caller, ITEMS, gate(plant))
        listener = await killed(plant, victim, follower, batch_id)
        task = await follower.get(batch_id)
    assert state(task) == "TASK_STATE_COMPLETED"
    assert_one_result_each(plant, batch_id, results(listener))
    assert_progress_grows(reports(listener), ITEMS)


async def test_the_batch_of_a_server_that_ends_goes_on_in_another_before_its_lease_is_over(plant: Plant) -> None:
    settings = AGENTS | {"A2A_LEASE_SECONDS": "600"}
    victim = await plant.web(**settings)
    await plant.worker(**settings)
    async with client(victim) as caller:
        batch_id = await execute(caller, FEW, gate(plant))
        async with listening(caller, "SubscribeToTask", {"id": batch_id}, after=1) as first:
            await first.until(lambda seen: bool(results(seen)), PATIENCE)
    other = await plant.web(**settings)
    async with client(other) as caller, listening(caller, "SubscribeToTask", {"id": batch_id}, after=1) as listener:
        assert await victim.stop(signal.SIGTERM) == 0
        gate(plant).touch()
        await listener.end(2 * PATIENCE)
        task = await caller.get(batch_id)
    assert state(task) == "TASK_STATE_COMPLETED"
    assert_one_result_each(plant, batch_id, results(listener))
