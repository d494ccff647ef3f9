"""A day of sends, shortened: rows stay bounded, and those who write do not notice."""

import asyncio
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import psycopg
import pytest

from tests.faults.clients import PATIENCE, message
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, Node

pytestmark = pytest.mark.fault
CONNECTIONS = 8
RATE = 500
"""Sends a second, if the machine can."""
AGE_SECONDS = 10
"""Seconds for which rows are kept, in place of a day, a week and a month."""
TABLES = ("task", "event", "idempotencykey", "exchange", "exchangebody")


def kept(seconds: float) -> dict[str, str]:
    """Return the settings for rows that are kept for so long."""
    return {
        "A2A_KEY_HOURS": str(seconds / 3600),
        "A2A_EXCHANGE_DAYS": str(seconds / 86_400),
        "A2A_TASK_DAYS": str(seconds / 86_400),
        "A2A_SWEEP_SECONDS": "1",
    }


async def send_for(node: Node, seconds: float, rate: int = RATE) -> list[float]:
    """Send at the rate, over connections that are kept; return how long each answer took, in seconds."""
    ends, took = time.monotonic() + seconds, list[float]()

    async def one() -> None:
        url = urlsplit(node.base)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        while (began := time.monotonic()) < ends:
            body = orjson.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message({"text": "hello"})}}
            )
            head = (
                f"POST /agents/echo/jsonrpc HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {KEY}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            (length,) = (
                line.split(b":")[1] for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            assert b'"result"' in await reader.readexactly(int(length))
            took.append(time.monotonic() - began)
            await asyncio.sleep(max(0.0, began + CONNECTIONS / rate - time.monotonic()))
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return took


def rows(database: str, folder: Path) -> dict[str, int]:
    """Count the rows of each table."""
    asked = {table: f"select count(*) from tasks_app_{table}" for table in TABLES}  # noqa: S608
    connect: Callable[[], Any] = (
        (lambda: psycopg.connect(database)) if database else (lambda: sqlite3.connect(folder / "taskdesk.sqlite3"))
    )
    with closing(connect()) as connection:
        return {table: connection.execute(query).fetchone()[0] for table, query in asked.items()}


def shown(took: list[float], seconds: float) -> str:
    ranks = statistics.quantiles(took, n=100)
    return f"{len(took) / seconds:.0f} sends/s, p50 {ranks[49] * 1000:.1f} ms, p99 {ranks[98] * 1000:.1f} ms"


async def day(start: Start, database: str, seconds: float) -> str:
    """Send without anything old, then with all of it old after a moment; return the measurements in words."""
    settings = {"DATABASE_URL": database} if database else {}
    quiet_node = await start(**settings)
    await send_for(quiet_node, 2)
    quiet = await send_for(quiet_node, seconds)
    await quiet_node.stop()
    node = await start(**settings | kept(AGE_SECONDS))
    await send_for(node, AGE_SECONDS + 2)
    first = await send_for(node, seconds)
    middle = rows(database, node.folder)
    second = await send_for(node, seconds)
    at_end = rows(database, node.folder)
    most = (
        max(len(first), len(second)) / seconds * (AGE_SECONDS + 20)
    )  # three times the time between two looks, and more
    assert at_end["task"] < most, (at_end, most)
    assert at_end["exchange"] < most, (at_end, most)
    lags = [row["lag"] for row in await node.lines("a2a", "processes") if row["ended_at"] is None]
    return (
        f"\n{'PostgreSQL' if database else 'SQLite'}: quiet {shown(quiet, seconds)}; while deleting "
        f"{shown(first + second, 2 * seconds)}\nrows in the middle {middle}, at the end {at_end}, lag {lags}\n"
    )


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_rows_are_deleted_while_messages_are_sent(
    start: Start, request: pytest.FixtureRequest, database: str
) -> None:
    """Sends go on until of every table less is left than half of what was sent."""
    url = request.getfixturevalue("postgres") if database == "postgres" else ""
    node = await start(**kept(1) | ({"DATABASE_URL": url} if url else {}))
    sent = 0
    async with asyncio.timeout(PATIENCE):
        while not sent or max(rows(url, node.folder).values()) >= sent / 2:
            sent += len(await send_for(node, 1, rate=100))


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_rows_stay_bounded_while_messages_are_sent(
    start: Start, request: pytest.FixtureRequest, database: str
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else ""
    sys.stdout.write(await day(start, url, 60))


async def test_old_rows_are_purged_beside_a_live_server(start: Start) -> None:
    node = await start()
    await send_for(node, 2)
    await asyncio.sleep(1.5)
    sending = asyncio.create_task(send_for(node, 3))
    lines = await node.lines("a2a", "purge", "--before", "1s", "--exchanges", "--tasks")
    took = await sending
    deleted = {line["rows"]: line["deleted"] for line in lines if line["done"]}
    assert deleted["tasks"] > 0
    assert deleted["exchanges"] >= deleted["tasks"]
    left = rows("", node.folder)
    assert left["task"] <= left["idempotencykey"] - deleted["tasks"]
    sys.stdout.write(f"\npurged {deleted} beside {shown(took, 3)}\n")
