"""Exchanges of calls that are answered while the database is away."""

import asyncio
import time

import psycopg
import pytest

from tests.faults.clients import PATIENCE, client
from tests.faults.conftest import SHORT, Start
from tests.faults.outages import fails, outage

pytestmark = pytest.mark.fault
CALLS = 40
OUTAGE_SECONDS = 2.0


async def test_every_answer_that_was_given_while_the_database_was_away_is_recorded(
    start: Start, postgres_server: str, postgres: str
) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    answered = 0
    async with client(node) as caller:
        for _ in range(3):
            await fails(caller)
            answered += 1
        with outage(postgres_server, postgres):
            ends = time.monotonic() + OUTAGE_SECONDS
            failed = [await fails(caller) for _ in range(CALLS)]
            assert all(failed)
            answered += CALLS
            await asyncio.sleep(max(0.0, ends - time.monotonic()))
        with psycopg.connect(postgres, autocommit=True) as look:
            async with asyncio.timeout(PATIENCE):
                while recorded(look) < answered:  # noqa: ASYNC110  # no Event there
                    await asyncio.sleep(0.1)
            assert recorded(look) == answered
    (row,) = [row for row in await node.lines("a2a", "processes") if row["role"] == "web"]
    assert row["lost"] == 0


def recorded(look: "psycopg.Connection[tuple[int]]") -> int:
    row = look.execute("select count(*) from tasks_app_exchange").fetchone()
    assert row
    return int(row[0])
