"""Webs and workers as processes of their own, on PostgreSQL and Redis, that die one by one."""

import asyncio
import signal
import time
from contextlib import AsyncExitStack

import httpx
import psycopg
import pytest
import redis

from tasks_app.hints.redis_group import GROUP
from tests.faults.clients import PATIENCE, Client, assert_whole, client, inputs, listening
from tests.faults.conftest import Plant
from tests.faults.nodes import TAKE_OVER_SECONDS, Node

pytestmark = pytest.mark.fault
POLL_SECONDS = 40
"""Where nothing is to be left to the poll."""
BROKER_SECONDS = 10
"""For which a process waits for its broker, in place of two: so long stands no machine still."""
HINTS = f"taskdesk__group__{GROUP}"
STORY = {"message": inputs(pause=0.08, words=1)}


def holder(plant: Plant, task_id: str, workers: list[Node]) -> Node:
    """Return the worker whose lease the task is under; straight from the database, while it is."""
    with psycopg.connect(plant.settings["DATABASE_URL"]) as connection:
        row = connection.execute("select lease_owner from tasks_app_task where id = %s", (task_id,)).fetchone()
    assert row
    (found,) = [worker for worker in workers if f":{worker.pid}:" in row[0]]
    return found


async def joined(plant: Plant, number: int) -> None:
    """Wait until so many processes hear each other's hints."""
    with redis.Redis.from_url(plant.redis.url) as asked:
        async with asyncio.timeout(PATIENCE):
            while asked.pubsub_numsub(HINTS)[0][1] < number:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)


async def test_a_task_of_one_web_is_followed_through_another(plant: Plant) -> None:
    first, second = await plant.web(), await plant.web()
    for _ in range(2):
        await plant.worker()
    async with client(first) as here, client(second) as there:
        async with listening(here, "SendStreamingMessage", STORY, agent="story") as one:
            await one.count(1)
            async with listening(there, "SubscribeToTask", {"id": one.task_id}, after=1) as other:
                await one.end()
                await other.end()
        assert one.frames == other.frames
        assert assert_whole(one.frames) == await there.get(one.task_id)
        task = await here.state(await here.send("says-who"), "TASK_STATE_COMPLETED")
    who = task["artifacts"][0]["parts"][0]["data"]
    assert (who["scopes"], who["tenant"]) == (["*"], "default")
    assert who["pid"] not in {first.pid, second.pid}
    (run,) = (await first.shown(one.task_id))["runs"]
    assert run["outcome"] == "completed"
    workers = [web for web in (first, second) if f":{web.pid}:" in run["worker"]]
    assert workers == [], "a web runs no queued agents"


async def test_a_hint_of_another_process_wakes_a_stream_before_the_poll(plant: Plant) -> None:
    slow = {"A2A_POLL_SECONDS": str(POLL_SECONDS)}
    first, second = await plant.web(**slow), await plant.web(**slow)
    await plant.worker(**slow)
    await joined(plant, 3)
    async with client(first) as here, client(second) as there:
        async with listening(here, "SendStreamingMessage", STORY, agent="story") as one:
            await one.count(1)
            async with listening(there, "SubscribeToTask", {"id": one.task_id}, after=1) as other:
                await asyncio.gather(one.end(POLL_SECONDS - 5), other.end(POLL_SECONDS - 5))
        assert one.frames == other.frames


async def test_a_killed_web_costs_its_clients_a_reconnection_to_another(plant: Plant) -> None:
    first, second = await plant.web(), await plant.web()
    await plant.worker()
    gate = plant.folder / "open"
    params = {"message": inputs(until=str(gate))}
    async with client(first) as here, listening(here, "SendStreamingMessage", params, agent="halts") as before:
        await before.count(8)
        first.kill()
        await before.end()
    assert before.broke is not None
    gate.touch()
    async with client(second) as there:
        subscription = {"id": before.task_id}
        async with listening(there, "SubscribeToTask", subscription, after=before.last_id) as after:
            await after.end()
        assert assert_whole(before.frames, after.frames) == await there.get(before.task_id)
    task = await second.shown(before.task_id)
    assert (task["fence"], [run["outcome"] for run in task["runs"]]) == (1, ["completed"])


@pytest.mark.requirement("VAPORA-12")
async def test_a_task_of_a_killed_worker_goes_on_in_another(plant: Plant) -> None:
    web = await plant.web()
    workers = [await plant.worker(), await plant.worker()]
    params = {"message": inputs()}
    async with client(web) as caller, listening(caller, "SendStreamingMessage", params, agent="halts") as stream:
        await stream.count(8)
        holder(plant, stream.task_id, list(workers)).kill()
        await stream.until(lambda seen: seen.began_again(), TAKE_OVER_SECONDS)
        await stream.end()
        assert assert_whole(stream.frames) == await caller.get(stream.task_id)
    task = await web.shown(stream.task_id)
    assert (task["fence"], task["attempt"], task["state"]) == (2, 2, "completed")
    assert [run["outcome"] for run in task["runs"]] == ["lost", "completed"]


async def test_a_worker_that_is_told_to_go_gives_its_tasks_to_another_at_once(plant: Plant) -> None:
    web = await plant.web(A2A_LEASE_SECONDS="60")
    workers = [await plant.worker(A2A_LEASE_SECONDS="60"), await plant.worker(A2A_LEASE_SECONDS="60")]
    async with client(web) as caller:
        params = {"message": inputs(file=str(plant.folder / "calls"))}
        async with listening(caller, "SendStreamingMessage", params, agent="counted-thrice") as stream:
            await stream.count(3)
            going = holder(plant, stream.task_id, list(workers))
            assert await going.stop(signal.SIGTERM) == 0
            await stream.end()
        assert assert_whole(stream.frames)["status"]["state"] == "TASK_STATE_COMPLETED"
    task = await web.shown(stream.task_id)
    assert (task["fence"], task["attempt"]) == (2, 2)
    assert [run["outcome"] for run in task["runs"]] == ["interrupted", "completed"]


async def test_flushing_redis_in_mid_stream_loses_nothing(plant: Plant) -> None:
    web, worker = await plant.web(), await plant.worker()
    async with client(web) as caller:
        async with AsyncExitStack() as stack:
            seen = [
                await stack.enter_async_context(listening(caller, "SendStreamingMessage", one, agent="story"))
                for one in [{"message": inputs(pause=0.08, words=1)} for _ in range(5)]
            ]
            for stream in seen:
                await stream.count(6)
            plant.redis.flush()
            waiting = await caller.send("once", seconds=0)
            for stream in seen:
                await stream.end()
        for stream in seen:
            assert assert_whole(stream.frames) == await caller.get(stream.task_id)
        await caller.state(waiting, "TASK_STATE_COMPLETED")
    assert worker.process
    assert worker.process.poll() is None


async def restarted(plant: Plant) -> None:
    plant.redis.kill()
    await asyncio.sleep(1)
    plant.redis.start()


@pytest.mark.finds("broker:", "hints:")
async def test_redis_that_dies_and_comes_back_empty_loses_nothing(plant: Plant) -> None:
    web, worker = await plant.web(), await plant.worker()
    async with client(web) as caller:
        async with listening(caller, "SendStreamingMessage", STORY, agent="story") as stream:
            await stream.count(6)
            await restarted(plant)
            during = await caller.send("once", seconds=0)
            await stream.end()
        assert assert_whole(stream.frames) == await caller.get(stream.task_id)
        await caller.state(during, "TASK_STATE_COMPLETED")
        # Hints wake workers and readers at once again.
        await asyncio.sleep(3)
        await quick_round(caller)
    assert worker.process
    assert worker.process.poll() is None


async def quick_round(caller: Client) -> None:
    answer = await caller.result("SendMessage", {"message": inputs(seconds=0)}, agent="once")
    assert answer["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.finds("broker:", "hints:")
@pytest.mark.parametrize("trouble", ["frozen", "gone"])
@pytest.mark.requirement("VAPORA-12")
async def test_a_broker_that_does_not_answer_slows_no_answer(plant: Plant, trouble: str) -> None:
    web = await plant.web(A2A_POLL_SECONDS="0.3", BROKER_SECONDS=str(BROKER_SECONDS))
    await plant.worker()
    async with client(web) as caller:
        await quick_round(caller)
        if trouble == "frozen":
            plant.redis.tell(signal.SIGSTOP)
        else:
            plant.redis.kill()
        took = []
        sent = []
        for _ in range(20):
            since = time.monotonic()
            sent.append(await caller.send("once", seconds=0))
            took.append(time.monotonic() - since)
            await asyncio.sleep(0.1)
        assert max(took) < BROKER_SECONDS, "less than the patience of a single attempt to publish"
        # Workers find the tasks in their sweeps, and readers the ends in their polls.
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
        ready = await readiness(caller, "degraded", "broker: ")
        assert ready.status_code == 200
        if trouble == "frozen":
            plant.redis.tell(signal.SIGCONT)
        else:
            plant.redis.start()
        await readiness(caller, "ok", sends=False)
        await quick_round(caller)


@pytest.mark.finds("broker:", "hints:")
async def test_streams_and_waits_reach_their_ends_without_any_hint(plant: Plant) -> None:
    web, _ = await plant.web(), await plant.worker()
    async with client(web) as caller:
        await quick_round(caller)
        plant.redis.kill()
        params = {"message": inputs(seconds=1)}
        async with listening(caller, "SendStreamingMessage", params, agent="once") as stream:
            await stream.end()
        assert assert_whole(stream.frames) == await caller.get(stream.task_id)
        await quick_round(caller)


async def readiness(caller: Client, status: str, words: str = "", *, sends: bool = True) -> httpx.Response:
    """Return the answer of /readyz, once it says so with the words. Tasks sent meanwhile ask the broker."""
    deadline = time.monotonic() + 2 * PATIENCE
    while True:
        ready = await caller.http.get(f"{caller.node.base}/readyz")
        if ready.json()["status"] == status and words in ready.text:
            return ready
        assert time.monotonic() < deadline, ready.text
        if sends:
            await caller.send("once", seconds=0)
        await asyncio.sleep(0.2)


async def test_a_cancel_through_a_web_stops_the_run_in_the_worker(plant: Plant) -> None:
    slow = {"A2A_LEASE_SECONDS": "600", "A2A_POLL_SECONDS": "600"}
    web, worker = await plant.web(**slow), await plant.worker(**slow)
    await joined(plant, 2)
    async with client(web) as caller:
        task_id = await caller.send("once", seconds=600)
        await caller.state(task_id, "TASK_STATE_WORKING")
        answer = await caller.result("CancelTask", {"id": task_id})
        assert answer["status"]["state"] == "TASK_STATE_CANCELED"
        # Without the hint the worker would learn it from its heartbeat, after 200 s.
        deadline = time.monotonic() + PATIENCE
        while f"{task_id} fence 1: stopped" not in worker.log:
            assert time.monotonic() < deadline, worker.log
            await asyncio.sleep(0.05)


async def test_doubled_wakes_run_a_task_once(plant: Plant) -> None:
    from celery import Celery

    from tasks_app.hints.dispatch import WAKE

    web = await plant.web()
    for _ in range(2):
        await plant.worker()
    broker = Celery(broker=plant.redis.url)
    async with client(web) as caller:
        sent = []
        for _ in range(10):
            sent.append(await caller.send("once", seconds=0))
            for _ in range(5):
                await asyncio.to_thread(broker.send_task, WAKE, queue="default")
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    tasks = await web.lines("tasks", "list", "--agent", "once")
    assert [(task["fence"], task["attempt"]) for task in tasks] == [(1, 1)] * len(sent)
    await asyncio.to_thread(broker.close)
