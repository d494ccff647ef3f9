"""Workers: their queues, pools and slots, what they refuse, and how they go."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, Client, client
from tests.faults.conftest import SHARED, Plant
from tests.faults.nodes import AGENTS, ROOT, Worker, environment, manage
from tests.support.servers import COMMAND_SECONDS, free_port

pytestmark = pytest.mark.fault
NO_BROKERS = [
    "memory://",
    "localhost:6379",
    "redis://",
    "http://127.0.0.1",
    "redis://[::1",
    "redis://u:pa/ss@host",
    "redis://h:0x1",
]
PRODUCTION = {"SECRET_KEY": "a secret of thirty-two characters and more", "CELERY_BROKER_URL": "redis://127.0.0.1:9/0"}


def pid_in(task: dict[str, Any]) -> int:
    return int(task["artifacts"][0]["parts"][0]["data"]["pid"])


async def completed(caller: Client, sent: list[str]) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        return [await caller.state(task_id, "TASK_STATE_COMPLETED") for task_id in sent]


# ----------------------------------------------------------------- queues


async def test_a_worker_leaves_the_queues_of_others_alone(plant: Plant) -> None:
    web = await plant.web()
    await plant.worker("--queues", "default")
    async with client(web) as caller:
        left = await caller.send("burns", seconds=0)
        await completed(caller, [await caller.send("once", seconds=0)])
        await asyncio.sleep(1.5)  # Time for some sweeps.
        assert (await caller.get(left))["status"]["state"] == "TASK_STATE_SUBMITTED"
        await plant.worker("--queues", "cpu", "--processes", "1")
        await completed(caller, [left])


async def test_a_worker_with_processes_runs_one_task_in_each(plant: Plant) -> None:
    web = await plant.web()
    worker = await plant.worker("--queues", "cpu", "--processes", "2")
    async with client(web) as caller:
        tasks = await completed(caller, [await caller.send("burns", seconds=2) for _ in range(4)])
        pids = [pid_in(task) for task in tasks]
    assert worker.pid not in pids
    assert len(set(pids)) == 2, "both processes had a share"
    # The tasks of a lost claim are found by the name of its process, so each process has its own.
    workers = [(await web.shown(task["id"]))["runs"][0]["worker"] for task in tasks]
    assert all(f":{pid}:" in name for pid, name in zip(pids, workers, strict=True)), (pids, workers)


@pytest.mark.slow
async def test_a_task_of_a_killed_process_is_run_again_by_its_worker(plant: Plant) -> None:
    web = await plant.web()
    await plant.worker("--queues", "cpu", "--processes", "2")
    async with client(web) as caller:
        first = pid_in((await completed(caller, [await caller.send("burns", seconds=0)]))[0])
        sent = [await caller.send("burns", seconds=6) for _ in range(2)]
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_WORKING")
        os.kill(first, signal.SIGKILL)
        again = await completed(caller, sent)
        assert first not in [pid_in(task) for task in again]
    assert sorted([(await web.shown(task_id))["fence"] for task_id in sent]) == [1, 2]


async def test_the_more_urgent_task_in_a_queue_goes_first(plant: Plant) -> None:
    web = await plant.web()
    async with client(web) as caller:
        ordinary = [await caller.send("once", seconds=0) for _ in range(5)]
        urgent = await caller.send("urgent")
        await plant.worker(A2A_ASYNC_SLOTS="1")
        await completed(caller, [*ordinary, urgent])
    started = {task_id: (await web.shown(task_id))["runs"][0]["started_at"] for task_id in [*ordinary, urgent]}
    assert sorted(started, key=started.__getitem__) == [urgent, *ordinary]


async def test_more_tasks_than_slots_are_all_done_without_waiting_for_a_sweep(plant: Plant) -> None:
    web = await plant.web(A2A_SWEEP_SECONDS="60")
    await plant.worker(A2A_SWEEP_SECONDS="60", A2A_ASYNC_SLOTS="3", A2A_SYNC_SLOTS="1")
    async with client(web) as caller:
        await completed(caller, [await caller.send("once", seconds=0.05) for _ in range(30)])


# ------------------------------------------------------------------- ends


async def test_a_worker_with_processes_gives_its_tasks_back_when_it_is_told_to_go(plant: Plant) -> None:
    web = await plant.web()
    worker = await plant.worker("--queues", "cpu", "--processes", "2")
    async with client(web) as caller:
        task_id = await caller.send("burns", seconds=30)
        await caller.state(task_id, "TASK_STATE_WORKING")
        assert await worker.stop(signal.SIGTERM) == 0
        await caller.state(task_id, "TASK_STATE_SUBMITTED")
    task = await web.shown(task_id)
    assert (task["attempt"], [run["outcome"] for run in task["runs"]]) == (1, ["interrupted"])


async def test_a_sync_agent_that_does_not_end_does_not_hold_up_its_worker(plant: Plant) -> None:
    web, worker = await plant.web(), await plant.worker()
    async with client(web) as caller:
        await caller.state(await caller.send("stubborn"), "TASK_STATE_WORKING")
    assert await worker.stop(signal.SIGTERM) == 0


async def test_celerys_own_command_starts_the_same_worker(plant: Plant) -> None:
    web = await plant.web()
    worker = Worker(plant.folder / "celery", **plant.settings)
    plant.nodes.append(worker)
    worker.command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", "threads"]
    await worker.start()
    async with client(web) as caller:
        await completed(caller, [await caller.send("once", seconds=0), await caller.send("burns", seconds=0)])
    assert await worker.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("pool", ["threads", "processes"])
async def test_a_redis_that_becomes_read_only_ends_no_worker_and_no_run(
    plant: Plant, tmp_path: Path, pool: str
) -> None:
    web, gate = await plant.web(A2A_SWEEP_SECONDS="60"), tmp_path / "open"
    worker = await plant.worker(*(["--processes", "2"] if pool == "processes" else []))
    async with client(web) as caller:
        at_work = await caller.send("once", until=str(gate))
        await caller.state(at_work, "TASK_STATE_WORKING")
        plant.redis.demote()
        await worker.logs("read only replica")
        # Only a sweep of the worker finds it.
        await completed(caller, [await caller.send("once", seconds=0)])
        plant.redis.promote()
        gate.touch()
        await completed(caller, [at_work])
    assert await worker.stop(signal.SIGTERM) == 0


@pytest.mark.finds("broker:", "hints:")
async def test_a_worker_that_lost_its_broker_does_not_wait_for_the_results_of_its_children(plant: Plant) -> None:
    web = await plant.web(A2A_SWEEP_SECONDS="60")
    worker = await plant.worker("--processes", "4")
    async with client(web) as caller:
        children: set[int] = set()
        async with asyncio.timeout(PATIENCE):
            while len(children) < 4:  # A child takes messages some time after the worker does.
                sent = [await caller.send("burns", seconds=0.5) for _ in range(4)]
                children = {pid_in(task) for task in await completed(caller, sent)}
        await asyncio.sleep(1)  # Time for the messages of these tasks to be answered.
        for child in children:
            os.kill(child, signal.SIGSTOP)
        last = await caller.send("once", seconds=0)
        await asyncio.sleep(1)  # Time for the message to reach a child, which cannot say so.
        plant.redis.kill()
        await worker.logs("Trying again")
        for child in children:
            os.kill(child, signal.SIGCONT)
        await completed(caller, [last])
        assert await worker.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("pool", ["threads", "processes"])
async def test_the_second_sigterm_leaves_at_once(plant: Plant, pool: str) -> None:
    web = await plant.web(A2A_GRACE_SECONDS="60")
    worker = await plant.worker(*(["--processes", "1"] if pool == "processes" else []), A2A_GRACE_SECONDS="60")
    async with client(web) as caller:
        await caller.state(await caller.send("once"), "TASK_STATE_WORKING")
    worker.tell(signal.SIGTERM)
    await worker.logs("1 run has 60 s to end")
    assert await worker.stop(signal.SIGTERM) == 1


@pytest.mark.finds("broker:", "hints:")
async def test_a_worker_with_processes_finds_tasks_without_its_broker(plant: Plant) -> None:
    web = await plant.web()
    await plant.worker("--queues", "cpu", "--processes", "1")
    plant.redis.kill()
    async with client(web) as caller:
        await completed(caller, [await caller.send("burns", seconds=0)])


async def test_a_worker_outlives_an_absent_broker_and_says_so_when_it_fails(plant: Plant) -> None:
    nobody = f"redis://127.0.0.1:{free_port()}/0"
    worker = Worker(plant.folder / "early", **plant.settings | {"CELERY_BROKER_URL": nobody, "LINGER_SECONDS": "2"})
    plant.nodes.append(worker)
    worker.launch()
    web = await plant.web()
    async with client(web) as caller:
        await completed(caller, [await caller.send("once", seconds=0)])
    # It runs nothing before it handles process signals, however long its start takes.
    assert await worker.stop(signal.SIGTERM) == 0


# --------------------------------------------------------------- refusals


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_worker_without_a_broker_says_what_to_do(tmp_path: Path) -> None:
    assert "CELERY_BROKER_URL is not set" in refused(manage(tmp_path, "worker"))
    celery = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "config", "worker"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert "CELERY_BROKER_URL is not set" in refused(celery)


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_sqlite_with_a_broker_is_refused(tmp_path: Path, command: str) -> None:
    assert "(a2a.E005) SQLite is for one process" in refused(manage(tmp_path, command, **PRODUCTION))


@pytest.mark.parametrize("url", NO_BROKERS)
def test_an_address_that_is_no_broker_is_refused(tmp_path: Path, url: str) -> None:
    said = refused(manage(tmp_path, "check", CELERY_BROKER_URL=url, REDIS_URL=url))
    assert "(a2a.E004) CELERY_BROKER_URL must be an address that begins with one of" in said
    assert "(a2a.E006) REDIS_URL must be an address that begins with one of" in said
    assert "ss@host" not in said


def test_a_queue_that_no_agent_has_is_refused(postgres: str, tmp_path: Path) -> None:
    settings = {"DATABASE_URL": postgres, **AGENTS, **PRODUCTION}
    assert manage(tmp_path, "migrate", "-v0", **settings).returncode == 0
    said = refused(manage(tmp_path, "worker", "--queues", "cpu,gpu", **settings))
    assert "no agent has the queue gpu. The queues are cpu, default." in said
    for number in ("0", "-1"):
        said = refused(manage(tmp_path, "worker", "--processes", number, **settings))
        assert "--processes must be 1 or more" in said


def test_checks_warn_without_redis_or_a_common_secret(postgres: str, tmp_path: Path) -> None:
    done = manage(tmp_path, "check", DATABASE_URL=postgres)
    assert done.returncode == 0
    assert "(a2a.W002) Without REDIS_URL streams of tasks that run in another process lag up to 2 s." in done.stderr
    assert "(a2a.W003)" in done.stderr
    assert "a2a.W004" not in done.stderr
    assert "(a2a.W004)" in manage(tmp_path, "check", **SHARED).stderr
    assert "(a2a.W001)" in manage(tmp_path, "check", REDIS_URL="redis://127.0.0.1:9/0").stderr
