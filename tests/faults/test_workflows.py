"""kill -9 in each phase of a workflow: its execution goes on, and each phase has one result."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from a2a.workflows import PHASES
from tests.faults.clients import PATIENCE, Client, client
from tests.faults.conftest import Plant
from tests.faults.nodes import holder

pytestmark = pytest.mark.fault
AGENTS = {"A2A_AGENT_MODULES": "tests.faults.sparc_agents"}
NAMES = [phase.value for phase in PHASES]


async def execute(caller: Client, name: str, **inputs: Any) -> None:
    """Begin the execution of all phases of a workflow."""
    message = {"role": "user", "messageId": name, "parts": [{"kind": "data", "data": inputs}]}
    await caller.result("sparc/execute", {"workflowId": name, "message": message})


async def workflow(caller: Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await caller.result("sparc/workflow/get", {"workflowId": name})
    return found


async def begun(caller: Client, name: str, place: int) -> str:
    """Return the task of a phase, once its agent has said something."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for one in (await workflow(caller, name))["phases"][place]["tasks"]:
                if (await caller.get(one["taskId"])).get("artifacts"):
                    return str(one["taskId"])
            await asyncio.sleep(0.05)


async def completed(caller: Client, name: str) -> dict[str, Any]:
    """Return the workflow, once it has ended."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await workflow(caller, name)
            if found["state"] != "active":
                assert found["state"] == "completed", found
                return found
            await asyncio.sleep(0.05)


def outcomes(plant: Plant, task_id: str) -> list[str]:
    """Return how each run of a task ended, the first one first."""
    with psycopg.connect(plant.settings["DATABASE_URL"]) as connection:
        query = "select outcome from tasks_app_run where task_id = %s order by started_at"
        return [outcome for (outcome,) in connection.execute(query, (task_id,))]


def assert_one_result_each(found: dict[str, Any], calls: list[list[str]]) -> None:
    """Check that each phase has one task, with one result: that of the last attempt of its agent."""
    last = {task_id: attempt for task_id, attempt, _ in calls}
    assert [one["phase"] for one in found["phases"]] == NAMES
    for one in found["phases"]:
        assert one["state"] == "completed"
        (task,) = one["tasks"]
        (artifact,) = one["result"]["artifacts"]
        (part,) = artifact["parts"]
        assert part["text"] == f"{one['phase']} by attempt {last[task['taskId']]}"
    assert len(last) == len(NAMES)


@pytest.mark.long
@pytest.mark.requirement("SPARC-17")
async def test_a_workflow_with_a_worker_killed_in_each_phase_has_each_result_once(plant: Plant, tmp_path: Path) -> None:
    web = await plant.web(**AGENTS)
    pair = (await plant.worker(**AGENTS), await plant.worker(**AGENTS))
    file = tmp_path / "calls"
    async with client(web) as caller:
        await execute(caller, "w", file=str(file))
        for place in range(len(NAMES)):
            task_id = await begun(caller, "w", place)
            owner, _ = holder(plant.settings["DATABASE_URL"], task_id, pair)
            owner.kill()
            owner.launch()
        found = await completed(caller, "w")
        assert_one_result_each(found, [line.split() for line in file.read_text("ascii").splitlines()])
        assert found["metrics"]["tasksTotal"] == len(NAMES)
    for one in found["phases"]:
        first, *_, last = outcomes(plant, one["tasks"][0]["taskId"])
        assert (first, last) == ("lost", "completed")
