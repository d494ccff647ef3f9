"""PostgreSQL goes away and comes back under a running server."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.faults.clients import PATIENCE, Client, assert_whole, client, inputs, listening
from tests.faults.conftest import SHORT, Start

pytestmark = pytest.mark.fault
AT_ONCE_SECONDS = 3.0
"""Nothing waits for a database that is away: a patience of ours or of its driver would be longer."""
CUT = """select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()"""
CUT_WAITING = """select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%for no key update%'"""


def cut(database: str) -> int:
    """Ends every connection to the database, as its restart does; how many there were."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(CUT).fetchone()
    assert row
    return int(row[0])


@contextmanager
def outage(server: str, database: str) -> Iterator[None]:
    """The database is away."""
    name = sql.Identifier(urlsplit(database).path[1:])
    allow = sql.SQL("alter database {} with allow_connections {}")
    with psycopg.connect(server, autocommit=True) as connection, psycopg.connect(database, autocommit=True) as inside:
        connection.execute(allow.format(name, sql.SQL("false")))
        try:
            inside.execute(CUT)
            yield
        finally:
            connection.execute(allow.format(name, sql.SQL("true")))


async def fails(caller: Client) -> bool:
    """Whether a send does; what it answers then is an error of ours."""
    reply = await caller.reply("SendMessage", {"message": inputs(word="hello")})
    if "error" in reply:
        assert reply["error"]["code"] in {-32603, -38013}
    return "error" in reply


async def test_connections_that_are_cut_cost_one_failed_call_at_most(start: Start, postgres: str) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        assert not await fails(caller)
        async with listening(
            caller, "SendStreamingMessage", {"message": inputs(pause=0.1, words=2)}, agent="story"
        ) as seen:
            await seen.count(5)
            # Each may hit a write of the story, which has three attempts.
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


async def test_a_write_that_the_database_drops_does_not_fail_the_task(start: Start, postgres: str) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        task_id = await caller.send("story", pause=0.5, words=4)
        async with listening(caller, "SubscribeToTask", {"id": task_id}, after=1) as seen:
            await seen.count(5)
        with psycopg.connect(postgres) as holder, psycopg.connect(postgres, autocommit=True) as observer:
            # The row is locked, so the next write of the run waits, and is cut while it does.
            holder.execute("select 1 from tasks_app_task where id = %s for update", (task_id,))
            async with asyncio.timeout(PATIENCE):
                while observer.execute(CUT_WAITING).fetchone() is None:  # noqa: ASYNC110  # no Event there
                    await asyncio.sleep(0.02)
        task = await caller.state(task_id, "TASK_STATE_COMPLETED")
        assert text(task).startswith("A small server stood at the edge")


def text(task: dict[str, list[dict[str, list[dict[str, str]]]]]) -> str:
    (artifact,) = task["artifacts"]
    return "".join(part["text"] for part in artifact["parts"])
