"""A database that hangs, refuses writes, or is kept busy by one owner, and callers who do not wait."""

import asyncio
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import kill
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.faults.bystander import bystand, percentiles
from tests.faults.clients import HEADERS, PATIENCE, Client, client, envelope, inputs
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import KEY, Node, manage
from tests.faults.outages import cut
from tests.faults.rows import COPIES, fill
from tests.support import servers

pytestmark = pytest.mark.fault
GOOD_SECONDS = 30.0
"""In which all is well again after the database is, on a machine that others use too."""
IMPATIENT_SECONDS = 1.0
UNDER_WAY = 16
"""Calls that the database may have at the moment it stops: a group."""
MIB = 2**20
ROWS = 3_000
MORE_MEMORY = 50 * MIB


# ------------------------------------------------------------------- frozen


@pytest.fixture
def own_postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a server of the test's own, which may be stopped without stopping other tests."""
    monkeypatch.delenv("TEST_DATABASE_URL", raising=False)
    with servers.server(durable=False) as server, servers.database(server) as url:
        yield url


def processes(database: str) -> list[int]:
    """Return the server's processes: the first, and those it has started."""
    with psycopg.connect(database) as connection:
        row = connection.execute("show data_directory").fetchone()
    assert row
    first = int((Path(row[0]) / "postmaster.pid").read_text(encoding="ascii").split("\n", 1)[0])
    found = [first]
    for children in Path(f"/proc/{first}/task").glob("*/children"):
        found += map(int, children.read_text(encoding="ascii").split())
    return found


@contextmanager
def frozen(database: str) -> Iterator[None]:
    stopped = processes(database)
    try:
        for pid in stopped:
            with suppress(ProcessLookupError):
                kill(pid, SIGSTOP)
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                kill(pid, SIGCONT)


async def impatient(node: Node, ends: float, asked: list[str]) -> None:
    """Send, give up after a second, and send another."""
    async with httpx.AsyncClient(headers=HEADERS, timeout=IMPATIENT_SECONDS, verify=servers.NO_TLS) as http:
        while time.monotonic() < ends:
            said = inputs(word="hello")
            asked.append(said["messageId"])
            with suppress(httpx.TransportError):
                await http.post(f"{node.base}/jsonrpc", content=envelope("SendMessage", {"message": said}))


def made_of(database: str, asked: list[str]) -> int:
    """Count the messages that became tasks."""
    with psycopg.connect(database) as connection:
        count = "select count(*) from tasks_app_idempotencykey where key = any(%s)"
        row = connection.execute(count, [asked]).fetchone()
    assert row
    return int(row[0])


@pytest.mark.parametrize(
    ("seconds", "callers"), [(6, 40), pytest.param(40, 300, marks=pytest.mark.long)], ids=["short", "long"]
)
async def test_a_frozen_database_costs_no_memory_and_no_work_for_callers_that_left(
    start: Start, own_postgres: str, capsys: pytest.CaptureFixture[str], seconds: int, callers: int
) -> None:
    node = await start(DATABASE_URL=own_postgres, **SHORT)
    asked: list[str] = []
    async with client(node) as caller:
        for _ in range(20):
            await answered(caller)
        before, most = node.rss(), 0
        with frozen(own_postgres):
            ends = time.monotonic() + seconds
            flood = [asyncio.create_task(impatient(node, ends, asked)) for _ in range(callers)]
            while time.monotonic() < ends:
                await asyncio.sleep(0.5)
                most = max(most, node.rss())
            await asyncio.gather(*flood)
        since = time.monotonic()
        await good(caller)
        good_after = time.monotonic() - since
        await asyncio.sleep(2)  # Time for work that should not be done any more.
        made = made_of(own_postgres, asked)
    with capsys.disabled():
        print(  # noqa: T201  # what was measured
            f"\nfrozen for {seconds} s, {callers} callers with {IMPATIENT_SECONDS:g} s of patience: {len(asked)} "
            f"calls, {made} of them done, {before / MIB:.0f} -> {most / MIB:.0f} MiB, good after {good_after:.1f} s"
        )
    assert made <= UNDER_WAY
    assert most - before < MORE_MEMORY
    assert good_after < GOOD_SECONDS


async def answered(caller: Client) -> dict[str, Any]:
    return await caller.reply("SendMessage", {"message": inputs(word="hello")})


async def good(caller: Client) -> None:
    """Wait until sends are answered."""
    async with asyncio.timeout(PATIENCE):
        while "result" not in await answered(caller):  # noqa: ASYNC110  # no Event there
            await asyncio.sleep(0.05)


async def test_callers_of_a_frozen_database_are_told_to_come_again(start: Start, own_postgres: str) -> None:
    node = await start(DATABASE_URL=own_postgres, **SHORT | {"A2A_CALL_SECONDS": "1"})
    async with client(node) as caller:
        await good(caller)
        with frozen(own_postgres):
            said = {"message": inputs(word="hello")}
            response = await caller.http.post(caller.url(), content=envelope("SendMessage", said))
            assert response.json()["error"]["code"] == -38013
            assert "Retry-After" in response.headers
            assert (await caller.http.get(f"{node.base}/readyz")).status_code == 503
        await good(caller)


# ---------------------------------------------------------------- read-only


def read_only(server: str, database: str, value: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        name = sql.Identifier(database.rpartition("/")[2])
        statement = sql.SQL("alter database {} set default_transaction_read_only = {}")
        connection.execute(statement.format(name, sql.SQL(value)))


async def test_a_database_that_is_read_only_is_waited_for_and_needs_no_restart(
    start: Start, postgres_server: str, postgres: str
) -> None:
    node = await start(DATABASE_URL=postgres, **SHORT)
    async with client(node) as caller:
        await good(caller)
        read_only(postgres_server, postgres, "on")
        try:
            cut(postgres)
            await asyncio.sleep(0.2)
            for _ in range(10):
                response = await caller.http.post(
                    caller.url(), content=envelope("SendMessage", {"message": inputs(word="hello")})
                )
                assert response.json()["error"]["code"] == -38013, response.text
                assert int(response.headers["Retry-After"]) > 0
        finally:
            read_only(postgres_server, postgres, "off")
        await good(caller)
        for _ in range(20):
            assert "result" in await answered(caller)


async def test_runs_outlast_a_time_in_which_the_database_is_read_only(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    node = await start(DATABASE_URL=postgres)  # With the usual lease.
    gates = [tmp_path / name for name in ("meanwhile", "after")]
    async with client(node) as caller:
        runs = [await caller.send("once", seconds=300, until=str(gate)) for gate in gates]
        runs += [await caller.send("talks", words=3_000, until=str(gates[1]))]
        runs += [await caller.send("remembers", until=str(gates[0]))]
        runs += [await caller.send("maker", size=200_000, until=str(gates[0]))]
        for task_id in runs:
            await caller.state(task_id, "TASK_STATE_WORKING")
        read_only(postgres_server, postgres, "on")
        try:
            cut(postgres)
            gates[0].touch()
            for words in ("its memory waits for the database", "Append failed: cannot"):
                await node.logs(words)
        finally:
            read_only(postgres_server, postgres, "off")
        await good(caller)
        gates[1].touch()
        for task_id in runs:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    for task_id in runs:
        assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["completed"]
    assert "without the database" in node.log, "they have waited"
    assert "Traceback" not in node.log


# --------------------------------------------------------------- rare lists

RARE = [
    {"status": "TASK_STATE_REJECTED"},
    {"status": "TASK_STATE_CANCELED"},
    {"contextId": "here", "status": "TASK_STATE_REJECTED"},
    {"contextId": "nowhere"},
]


async def list_rarely(node: Node, key: str, times: list[float], place: int) -> None:
    headers = HEADERS | {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, verify=servers.NO_TLS) as http:
        while True:
            since = time.perf_counter()
            wish = RARE[(place + len(times)) % len(RARE)] | {"pageSize": 20}
            response = await http.post(f"{node.base}/jsonrpc", content=envelope("ListTasks", wish))
            assert "result" in response.json(), response.text
            times.append(time.perf_counter() - since)


@pytest.mark.parametrize("rows", [ROWS, pytest.param(1_000_000, marks=pytest.mark.long)], ids=["short", "long"])
async def test_rare_lists_of_one_owner_leave_the_others_alone(
    start: Start, postgres: str, capsys: pytest.CaptureFixture[str], rows: int
) -> None:
    node = await start(DATABASE_URL=postgres, A2A_TASK_DAYS="3000")
    key = f"tdk_{secrets.token_hex(16)}"
    made = f"from tasks_app.callers import access; access.new_key('many', key='{key}')"
    assert manage(node.folder, "shell", "--no-imports", "-c", made, **node.settings).returncode == 0
    seconds, lists = 2.0 if rows == ROWS else 10.0, list[float]()
    async with client(node) as owner:
        owner.http.headers["Authorization"] = f"Bearer {key}"
        task = (await owner.result("SendMessage", {"message": inputs(word="hello")}, agent="echo"))["task"]
        await asyncio.to_thread(fill, postgres, task["id"], rows)
        calm = await bystand(node, KEY, seconds)
        listing = [asyncio.create_task(list_rarely(node, key, lists, place)) for place in range(16)]
        meanwhile = await bystand(node, KEY, seconds)
        for one in listing:
            one.cancel()
        ends = await asyncio.gather(*listing, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(COPIES)
    with capsys.disabled():
        lines = [f"{rows} tasks, {len(lists)} rare lists from 16 connections: p50, p99 {percentiles(lists)} ms"]
        lines += [f"  {name:8} {percentiles(calm[name])}, then {percentiles(meanwhile[name])} ms" for name in calm]
        print("", *lines, sep="\n")  # noqa: T201  # what was measured
    assert all(meanwhile.values())
