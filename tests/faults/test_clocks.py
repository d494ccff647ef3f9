"""Machines whose clocks are wrong: they delete nothing, do nothing twice, and write the right times."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGTERM
from typing import Any

import psycopg
import pytest

from tests.faults.clients import PATIENCE, client, inputs
from tests.faults.conftest import SHORT, Plant
from tests.faults.nodes import AGENTS, Node, Worker
from tests.faults.shifted import DatabaseClock, shift

pytestmark = pytest.mark.fault
MESSAGES = 10
SWEEPS_SECONDS = 2.5
"""Five sweeps."""
TABLES = ("task", "event", "idempotencykey", "exchange", "exchangebody")


async def say(node: Node, messages: list[dict[str, Any]]) -> list[str]:
    """Send each message and return the ids of the tasks that it stands for."""
    async with client(node) as caller:
        tasks = [await caller.result("SendMessage", {"message": said}, agent="urgent") for said in messages]
    assert {task["task"]["status"]["state"] for task in tasks} == {"TASK_STATE_COMPLETED"}
    return [task["task"]["id"] for task in tasks]


def counts(database: str) -> dict[str, int]:
    found = {}
    with psycopg.connect(database) as connection:
        for table in TABLES:
            row = connection.execute(f"select count(*) from tasks_app_{table}").fetchone()  # type: ignore[arg-type]  # noqa: S608
            assert row
            found[table] = row[0]
    return found


async def row_of(node: Node, process: Node) -> dict[str, Any]:
    """Return the row of a process, once it has swept."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = [row for row in await node.lines("a2a", "processes") if f":{process.pid}:" in row["name"]]
            if rows:
                return rows[0]
            await asyncio.sleep(0.2)


async def readiness(node: Node) -> dict[str, Any]:
    async with client(node) as caller:
        return (await caller.http.get(f"{node.base}/readyz")).json()


@pytest.mark.parametrize("days", [2, 8, 35])
async def test_a_worker_whose_clock_is_ahead_deletes_nothing(plant: Plant, days: int) -> None:
    web = await plant.web()
    wrong = Worker(plant.folder / "wrong", **plant.settings)
    plant.nodes.append(shift(wrong, days))
    await wrong.start()
    messages = [inputs() for _ in range(MESSAGES)]
    tasks = await say(web, messages)  # The only worker is the one with the wrong clock.
    before = counts(plant.settings["DATABASE_URL"])
    await asyncio.sleep(SWEEPS_SECONDS)
    after = counts(plant.settings["DATABASE_URL"])
    assert all(after[table] >= before[table] > 0 for table in TABLES), (before, after)
    assert await say(web, messages) == tasks, "a message that comes again was done again"
    row = await row_of(web, wrong)
    assert row["clock_off"] == pytest.approx(days * 86_400, abs=60)
    assert row["steady_at"] is None
    assert any("ahead of the database's" in sentence for sentence in row["troubles"])
    assert (await row_of(web, web))["troubles"] == []
    assert (await readiness(web))["status"] == "ok"
    assert_times_are_right(plant.settings["DATABASE_URL"])
    await says_goodbye(web, wrong)


async def test_a_web_whose_clock_is_behind_writes_what_nobody_deletes(plant: Plant) -> None:
    right = await plant.web()
    await plant.worker()
    wrong = Node(plant.folder / "wrong", "serve", **plant.settings)
    plant.nodes.append(shift(wrong, -40))
    await wrong.start()
    messages = [inputs() for _ in range(MESSAGES)]
    tasks = await say(wrong, messages)
    before = counts(plant.settings["DATABASE_URL"])
    await asyncio.sleep(SWEEPS_SECONDS)
    after = counts(plant.settings["DATABASE_URL"])
    assert all(after[table] >= before[table] > 0 for table in TABLES), (before, after)
    assert await say(right, messages) == tasks
    said = await readiness(wrong)
    assert said["status"] == "degraded"
    assert any("behind the database's" in reason for reason in said["reasons"])
    assert (await readiness(right))["status"] == "ok"
    assert_times_are_right(plant.settings["DATABASE_URL"])
    await says_goodbye(right, wrong)


async def says_goodbye(right: Node, wrong: Node) -> None:
    """End the wrong process, in whose row the doctor would find its clock."""
    await wrong.stop(SIGTERM)
    assert (await row_of(right, wrong))["ended_at"]


def assert_times_are_right(database: str) -> None:
    now = datetime.now(UTC)
    times: list[datetime] = []
    with psycopg.connect(database) as connection:
        for id, created, status in connection.execute("select id, created_at, status_at from tasks_app_task"):
            times += [datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC), created, status]
        for query in ("select created_at from tasks_app_event", "select created_at from tasks_app_idempotencykey"):
            times += [time for (time,) in connection.execute(query)]  # type: ignore[arg-type]  # a string of ours
    assert len(times) > MESSAGES
    assert all(abs(now - time) < timedelta(minutes=5) for time in times), times


async def start_on_sqlite(nodes: list[Node], tmp_path: Path, migrated_file: Path) -> tuple[Node, Path]:
    """Start the only process of an installation. Return it with the file of the days by which its clock is set."""
    clock = tmp_path / "days"
    node = shift(Node(tmp_path / "data", "run", **AGENTS | SHORT), clock)
    nodes.append(node)
    shutil.copy(migrated_file, node.folder)
    return await node.start(), clock


@pytest.mark.finds("was set by")
async def test_a_clock_that_is_set_costs_no_task_at_work(
    nodes: list[Node], tmp_path: Path, migrated_file: Path
) -> None:
    node, clock = await start_on_sqlite(nodes, tmp_path, migrated_file)
    async with client(node) as caller:
        tasks = [await caller.send("talks", words=120), await caller.send("stubborn", seconds=12)]
        for task_id in tasks:
            await caller.state(task_id, "TASK_STATE_WORKING")
        clock.write_text("1", encoding="ascii")
        async with asyncio.timeout(PATIENCE):
            while "was set by" not in str(await readiness(node)):  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.1)
        for task_id in tasks:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    for task_id in tasks:
        assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["completed"]


@pytest.mark.finds("was set by", "in the future")
async def test_a_clock_that_is_set_back_makes_no_pause_between_attempts_longer(
    nodes: list[Node], tmp_path: Path, migrated_file: Path
) -> None:
    node, clock = await start_on_sqlite(nodes, tmp_path, migrated_file)
    async with client(node) as caller:
        task_id = await caller.send("pauses", file=str(tmp_path / "calls"))
        async with asyncio.timeout(PATIENCE):
            while "Attempt 1 of 2 failed" not in str(await caller.get(task_id)):  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)
        clock.write_text("-1", encoding="ascii")
        await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["failed", "completed"]


@pytest.mark.finds("the database's")
async def test_a_clock_of_the_database_that_is_set_costs_no_task_at_work(plant: Plant) -> None:
    clock = DatabaseClock(plant.settings["DATABASE_URL"])
    web = await plant.web()
    await plant.worker()
    async with client(web) as caller:
        tasks = [await caller.send("talks", words=120), await caller.send("stubborn", seconds=12)]
        for task_id in tasks:
            await caller.state(task_id, "TASK_STATE_WORKING")
        clock.set_ahead(timedelta(days=1))
        async with asyncio.timeout(PATIENCE):
            while "the database's clock was set by +86400 s" not in str(await readiness(web)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        for task_id in tasks:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    for task_id in tasks:
        assert [run["outcome"] for run in (await web.shown(task_id))["runs"]] == ["completed"]


@pytest.mark.slow
@pytest.mark.parametrize("days", [365, -365])
async def test_a_machine_in_the_wrong_year_does_not_empty_itself(nodes: list[Node], tmp_path: Path, days: int) -> None:
    def node() -> Node:
        nodes.append(Node(tmp_path / "data", "run", **AGENTS | SHORT))
        return nodes[-1]

    messages = [inputs() for _ in range(MESSAGES)]
    first = await node().start()
    tasks = await say(first, messages)
    await asyncio.sleep(1)
    await first.stop()
    for _ in range(2):  # The second start must not take the row of the first as proof of the year.
        wrong = await shift(node(), days).start()
        await asyncio.sleep(SWEEPS_SECONDS)
        said = await readiness(wrong)
        assert said["status"] == "degraded"
        assert any("last written to at" in reason for reason in said["reasons"]), said
        assert await say(wrong, messages) == tasks, "a message that comes again was done again"
        await wrong.stop()
    last = await node().start()
    await asyncio.sleep(SWEEPS_SECONDS)
    assert await say(last, messages) == tasks
    shown = {task["id"]: task["state"] for task in await last.lines("tasks", "list")}
    assert shown == dict.fromkeys(tasks, "completed")
    assert (await readiness(last))["status"] == "ok"
