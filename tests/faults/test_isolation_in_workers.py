"""Agents in processes of their own, in Celery workers."""

import signal

import pytest

from tests.faults.clients import client, ended, state, words
from tests.faults.conftest import Plant
from tests.faults.isolated_processes import GRACE, LONG_GRACE, data_of, process_of, wait_for_end
from tests.faults.nodes import ISOLATED

pytestmark = pytest.mark.fault


async def test_isolated_agents_run_in_a_forked_process_of_a_worker(plant: Plant) -> None:
    web = await plant.web(**ISOLATED)
    worker = await plant.worker("--processes", "1", A2A_KILL_SECONDS=str(GRACE), **ISOLATED)
    async with client(web) as caller:
        pid = int(data_of(await ended(caller, await caller.send("apart-function")))["pid"])
        await wait_for_end(pid)
        canceled = await caller.send("spins", stubborn=True)
        pid = await process_of(caller, canceled)
        await caller.result("CancelTask", {"id": canceled})
        assert await wait_for_end(pid) < LONG_GRACE
        late = await caller.send("ends-too-late")
        pid = await process_of(caller, late)
        assert words(await ended(caller, late)) == "The agent took longer than its timeout of 2 s."
        await wait_for_end(pid)
        stopped = await caller.send("spins")
        pid = await process_of(caller, stopped)
        assert await worker.stop(signal.SIGTERM) == 0
        await wait_for_end(pid)


@pytest.mark.finds("no process for isolated agents")
async def test_a_task_whose_process_cannot_start_goes_on_where_one_can(plant: Plant) -> None:
    web = await plant.web(**ISOLATED)
    ill = await plant.worker(**ISOLATED)
    async with client(web) as caller:
        await ended(caller, await caller.send("apart-function"))
        await ended(caller, await caller.send("stops-starts"))
        task_id = await caller.send("apart-function")
        await ill.logs("could not be started")
        await caller.state(task_id, "TASK_STATE_SUBMITTED")
        await plant.worker(**ISOLATED)
        assert state(await ended(caller, task_id)) == "TASK_STATE_COMPLETED"
    task = await web.shown(task_id)
    assert ([run["outcome"] for run in task["runs"]], task["attempt"]) == (["released", "completed"], 1)
