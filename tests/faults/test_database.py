"""PostgreSQL goes away and comes back under a running server."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from signal import SIGCONT, SIGQUIT, SIGSTOP
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest

from tasks_app.operators.tokens import PREFIX
from tests.faults.clients import PATIENCE, Client, assert_whole, client, inputs, listening
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import Node, assert_says_why, holder, manage
from tests.faults.outages import cut, fails, outage
from tests.support.receiver import receiver
from tests.support.servers import NO_TLS, Cluster, database

pytestmark = pytest.mark.fault
TALK_PAUSE = 0.1
"""Seconds between two words of an agent."""
AT_ONCE_SECONDS = 3.0
"""Nothing waits for a database that is away: a patience of ours or of its driver would be longer."""
HELD_SECONDS = 5
"""The seconds for which the database lets a transaction be idle; see config/databases.py."""
CUT_WAITING = """select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%for no key update%'"""


async def test_connections_that_are_cut_cost_one_failed_call_at_most(start: Start, postgres: str) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        assert not await fails(caller)
        async with listening(
            caller, "SendStreamingMessage", {"message": inputs(pause=0.1, words=2)}, agent="story"
        ) as seen:
            await seen.count(5)
            # Each cut may hit a write of the agent, which has three attempts.
            for _ in range(2):
                await cut_costs_little(caller, postgres)
            await seen.end()
        assert assert_whole(seen.frames) == await caller.state(seen.task_id, "TASK_STATE_COMPLETED")
        for _ in range(3):
            await cut_costs_little(caller, postgres)


async def cut_costs_little(caller: Client, database: str) -> None:
    assert cut(database) > 0
    assert sum([await fails(caller) for _ in range(10)]) <= 1
    await asyncio.sleep(0.2)


@pytest.mark.requirement("VAPORA-12")
async def test_an_outage_is_an_error_that_comes_at_once_and_passes(
    start: Start, postgres_server: str, postgres: str
) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        task_id = await caller.send("story", pause=0.1, words=2)
        await caller.state(task_id, "TASK_STATE_WORKING")
        with outage(postgres_server, postgres):
            since = time.monotonic()
            assert await fails(caller)
            assert (await caller.http.get(f"{node.base}/readyz")).status_code == 503
            assert time.monotonic() - since < AT_ONCE_SECONDS
            await asyncio.sleep(max(0.0, since + 1 - time.monotonic()))
        assert sum([await fails(caller) for _ in range(10)]) <= 1
        task = await caller.state(task_id, "TASK_STATE_COMPLETED")
        assert text(task).endswith("went on with the next word.")
        async with asyncio.timeout(PATIENCE):
            while (await caller.http.get(f"{node.base}/readyz")).status_code != 200:  # noqa: ASYNC110  # no Event there
                await asyncio.sleep(0.1)


async def test_an_outage_writes_lines_and_no_tracebacks_into_the_log(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    node, gate = await start(DATABASE_URL=postgres, **SHORT), tmp_path / "open"
    async with client(node) as caller:
        task_id = await caller.send("talks", words=3_000, until=str(gate))
        await caller.state(task_id, "TASK_STATE_WORKING")
        with outage(postgres_server, postgres):
            assert await fails(caller)
            for sentence in (
                "the sweep failed; trying again in 0.5 s: ",
                "leases could not be renewed; trying again: ",
            ):
                await node.logs(sentence)
        gate.touch()
        await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert "Traceback" not in node.log


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, pytest.param(20, marks=pytest.mark.long)])
async def test_a_database_that_crashes_and_is_away_for_less_than_a_lease_fails_no_run(
    start: Start, cluster: Cluster, tmp_path: Path, seconds: int, record_property: Any
) -> None:
    with database(cluster.url) as url:
        node = await start(DATABASE_URL=url)  # With the usual lease.
        enough, gates = tmp_path / "enough", [tmp_path / f"open-{place}" for place in range(5)]
        async with client(node) as caller:
            talk = {"words": 3_000, "pause": TALK_PAUSE, "until": str(enough)}
            talking = [await caller.send("talks", **talk) for _ in range(10)]
            ending = [await caller.send("once", seconds=300, until=str(gate)) for gate in gates]
            for task_id in (*talking, *ending):
                await caller.state(task_id, "TASK_STATE_WORKING")
            cluster.stop(SIGQUIT)
            since = time.monotonic()
            for gate in gates:  # They end while it is away.
                gate.touch()
                await asyncio.sleep(seconds / len(gates))
            await asyncio.to_thread(cluster.start)
            back = time.monotonic()
            enough.touch()
            said = [text(await completed(caller, task_id)) for task_id in talking]
            for task_id in ending:
                assert text(await completed(caller, task_id)) == "begun and ended"
            record_property("seconds without the database", round(back - since, 1))
            record_property("seconds until all runs had ended after it", round(time.monotonic() - back, 1))
        assert said == ["".join(f"{number} " for number in range(len(words.split()))) for words in said]
        for task_id in (*talking, *ending):
            task = await node.shown(task_id)
            assert (task["fence"], [run["outcome"] for run in task["runs"]]) == (1, ["completed"])
            assert [event["seq"] for event in task["events"]] == list(range(1, task["last_seq"] + 1))
        await node.stop()


@pytest.mark.long
async def test_a_database_file_locked_for_as_long_as_a_lease_fails_no_run(start: Start) -> None:
    node = await start()  # With the usual lease.
    async with client(node) as caller:
        talking = [await caller.send("talks", words=400, pause=TALK_PAUSE) for _ in range(5)]
        for task_id in talking:
            await caller.state(task_id, "TASK_STATE_WORKING")
        with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3", isolation_level=None)) as other:
            other.execute("begin immediate")
            await asyncio.sleep(30)
            other.execute("rollback")
        said = [text(await caller.state(task_id, "TASK_STATE_COMPLETED", 2 * PATIENCE)) for task_id in talking]
    assert said == ["".join(f"{number} " for number in range(400))] * len(talking)
    for task_id in talking:
        task = await node.shown(task_id)
        assert (task["fence"], [run["outcome"] for run in task["runs"]]) == (1, ["completed"])


async def completed(caller: Client, task_id: str) -> dict[str, Any]:
    """Return the task once it is completed, whatever calls answer while the database comes back."""
    async with asyncio.timeout(PATIENCE):
        while "error" in (reply := await caller.reply("GetTask", {"id": task_id})):  # noqa: ASYNC110  # no Event there
            await asyncio.sleep(0.1)
    assert reply["result"]["status"]["state"] in {"TASK_STATE_WORKING", "TASK_STATE_COMPLETED"}, reply
    return await caller.state(task_id, "TASK_STATE_COMPLETED", 2 * PATIENCE)


async def test_a_write_that_the_database_drops_does_not_fail_the_task(start: Start, postgres: str) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        task_id = await caller.send("story", pause=0.5, words=4)
        async with listening(caller, "SubscribeToTask", {"id": task_id}, after=1) as seen:
            await seen.count(5)
        with psycopg.connect(postgres) as holder, psycopg.connect(postgres, autocommit=True) as observer:
            # The next write of the run waits for the table, and its connection is cut meanwhile.
            holder.execute("lock table tasks_app_event in share mode")
            async with asyncio.timeout(PATIENCE):
                while observer.execute(CUT_WAITING).fetchone() is None:  # noqa: ASYNC110  # no Event there
                    await asyncio.sleep(0.02)
        task = await caller.state(task_id, "TASK_STATE_COMPLETED")
        assert text(task).startswith("A small server stood at the edge")


async def test_a_row_that_somebody_holds_costs_nobody_else_a_lease(
    pair: tuple[Node, Node], postgres: str, tmp_path: Path
) -> None:
    async with client(pair[0]) as caller:
        held = await caller.send("once")
        webhook = {"taskId": held, "url": "http://127.0.0.1:65000/"}
        named = {"taskId": held, "id": (await caller.result("CreateTaskPushNotificationConfig", webhook))["id"]}
        gate = tmp_path / "open"
        task_id = await caller.send("once", seconds=300, until=str(gate))
        await caller.state(task_id, "TASK_STATE_WORKING")
    owner, other = holder(postgres, task_id, pair)
    with psycopg.connect(postgres) as lock:
        lock.execute("select 1 from tasks_app_task where id = %s for update", (held,))
        async with client(owner) as caller, client(other) as second:
            gone = asyncio.create_task(caller.reply("DeleteTaskPushNotificationConfig", named))
            # The caller that needs the lock is told to come again.
            assert (await gone)["error"]["code"] == -38013
            gate.touch()
            ended = await second.state(task_id, "TASK_STATE_COMPLETED")
    assert text(ended) == "begun and ended"
    assert (await other.shown(task_id))["fence"] == 1


async def frozen(zombie: Node, database: str, task_id: str) -> bool:
    """Stop the process while it has the row of the task locked; false if it was never caught."""
    free = "select 1 from tasks_app_task where id = %s for no key update skip locked"
    with psycopg.connect(database, autocommit=True) as look:
        for _ in range(400):
            zombie.tell(SIGSTOP)
            for _ in range(5):  # The process may have been frozen just before its commit, or in another transaction.
                await asyncio.sleep(0.02)
                if look.execute(free, (task_id,)).fetchone():
                    break
            else:
                return True
            zombie.tell(SIGCONT)
            await asyncio.sleep(0.007)
    return False


async def test_a_worker_frozen_in_a_transaction_loses_its_task_and_stops_no_other(
    pair: tuple[Node, Node], postgres: str
) -> None:
    with receiver() as there:
        async with client(pair[0]) as caller:
            configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": there.url}}
            params = {"message": inputs(chunks=10_000, size=10, pause=0.01), "configuration": configuration}
            task_id = (await caller.result("SendMessage", params, agent="chatty"))["task"]["id"]
            await caller.state(task_id, "TASK_STATE_WORKING")
        zombie, other = holder(postgres, task_id, pair)
        assert await frozen(zombie, postgres, task_id), "it has a transaction for each of its events"
        try:
            async with client(other) as caller:
                async with asyncio.timeout(HELD_SECONDS + PATIENCE):
                    while (await caller.get(task_id))["status"]["state"] == "TASK_STATE_WORKING":
                        assert (await caller.http.get(f"{other.base}/readyz")).status_code == 200
                        assert (await caller.result("ListTasks", {"pageSize": 1}))["totalSize"] > 0
                        assert not await fails(caller)
                        await asyncio.sleep(0.2)
                assert_says_why(await caller.get(task_id))
        finally:
            zombie.tell(SIGCONT)


def test_options_in_the_address_of_a_database_win_over_our_own(tmp_path: Path, postgres: str) -> None:
    names = ("lock_timeout", "idle_in_transaction_session_timeout", "statement_timeout", "application_name")
    look = f"""
from django.db import connection
with connection.cursor() as cursor:
    for name in {names}:
        cursor.execute("select current_setting(%s)", [name])
        print(*cursor.fetchone())
"""

    def seen(query: str) -> list[str]:
        done = manage(tmp_path, "shell", "--no-imports", "-c", look, DATABASE_URL=postgres + query)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert seen("") == ["2s", "30s", "0", ""]
    given = quote("-c lock_timeout=7s -c statement_timeout=8s")
    assert seen(f"?options={given}&application_name=ours") == ["7s", "30s", "8s", "ours"]


def text(task: dict[str, list[dict[str, list[dict[str, str]]]]]) -> str:
    (artifact,) = task["artifacts"]
    return "".join(part["text"] for part in artifact["parts"])


async def test_the_memory_of_a_run_waits_for_a_database_that_is_away(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    node, gate = await start(DATABASE_URL=postgres), tmp_path / "open"
    async with client(node) as caller:
        task_id = await caller.send("remembers", until=str(gate))
        await caller.state(task_id, "TASK_STATE_WORKING")
        with outage(postgres_server, postgres):
            gate.touch()
            await node.logs("its memory waits for the database")
        assert text(await completed(caller, task_id)) == "remembered"
    assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["completed"]


async def test_pages_say_that_the_database_is_away(start: Start, postgres_server: str, postgres: str) -> None:
    node = await start(DATABASE_URL=postgres)
    async with httpx.AsyncClient(verify=NO_TLS, timeout=PATIENCE) as browser:
        with outage(postgres_server, postgres):
            page = await browser.get(f"{node.base}/admin/", headers={"Cookie": f"sessionid={'a' * 32}"})
            problem = await browser.get(f"{node.base}/api/v1/tasks/", headers={"Authorization": f"Bearer {PREFIX}any"})
    assert [(answer.status_code, answer.headers["retry-after"]) for answer in (page, problem)] == [(503, "2")] * 2
    assert page.text == "The database cannot do this now. Try again in 2 s.\n"
    assert (problem.headers["content-type"], problem.json()["status"]) == ("application/problem+json", 503)
    assert "Traceback" not in node.log
