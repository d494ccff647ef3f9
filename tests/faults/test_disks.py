"""A disk that is full: callers are told to come again, runs at work wait for room, and nothing is lost."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, prlimit

import pytest

from tests.faults.clients import PATIENCE, Client, client, envelope, inputs
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import Node

pytestmark = pytest.mark.fault


@contextmanager
def no_room(node: Node) -> Iterator[None]:
    """Let no file of the process become larger than the log of its database is, as on a disk without room."""
    size = (node.folder / "taskdesk.sqlite3-wal").stat().st_size
    prlimit(node.pid, RLIMIT_FSIZE, (size, RLIM_INFINITY))
    try:
        yield
    finally:
        prlimit(node.pid, RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await true():  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.1)


class Sender:
    """Sends messages to a quick agent, and keeps the ids of the tasks of those that were accepted."""

    def __init__(self, caller: Client) -> None:
        self.caller = caller
        self.accepted: list[str] = []

    async def accepts(self) -> bool:
        """Send one; return whether it was accepted. A refusal must say when to come again."""
        body = envelope("SendMessage", {"message": inputs(word="x" * 2_000)})
        answer = await self.caller.http.post(self.caller.url("echo"), content=body)
        if "result" in (reply := answer.json()):
            self.accepted.append(reply["result"]["task"]["id"])
            return True
        assert (answer.status_code, reply["error"]["code"]) == (503, -38013)
        assert int(answer.headers["Retry-After"]) > 0
        return False

    async def refused(self) -> bool:
        return not await self.accepts()

    async def is_ready(self) -> bool:
        answer = await self.caller.http.get(f"{self.caller.node.base}/readyz")
        assert answer.status_code == 200 or "sweeper" in answer.text, answer.text
        return answer.status_code == 200

    async def is_unready(self) -> bool:
        return not await self.is_ready()


async def test_a_full_disk_refuses_sends_fails_no_run_and_loses_nothing(start: Start, tmp_path: Path) -> None:
    node = await start(**SHORT | {"A2A_LEASE_SECONDS": "120"})
    meanwhile, after = tmp_path / "meanwhile", tmp_path / "after"
    async with client(node) as caller:
        sender = Sender(caller)
        runs = [await caller.send("once", seconds=300, until=str(gate)) for gate in (meanwhile, after)]
        runs += [await caller.send("talks", words=3_000, until=str(after))]
        for task_id in runs:
            await caller.state(task_id, "TASK_STATE_WORKING")
        with no_room(node):
            meanwhile.touch()
            await until(sender.refused)  # The log of the database may have some room from before.
            await until(sender.is_unready)
            assert await sender.refused()
            for task_id in runs:
                assert (await caller.get(task_id))["status"]["state"] == "TASK_STATE_WORKING", "reads go on"
        await until(sender.accepts)
        after.touch()
        for task_id in (*runs, *sender.accepted):
            await caller.state(task_id, "TASK_STATE_COMPLETED")
        await until(sender.is_ready)
    for task_id in runs:
        assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["completed"]
    assert "Traceback" not in node.log
    await node.stop()
    with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3")) as file:
        assert file.execute("pragma integrity_check").fetchall() == [("ok",)]


async def test_a_database_file_that_was_moved_away_takes_no_more_work(start: Start, tmp_path: Path) -> None:
    """Work in it would be accepted, and lost with the process."""
    node = await start(**SHORT)
    file, elsewhere = node.folder / "taskdesk.sqlite3", tmp_path / "elsewhere"
    async with client(node) as caller:
        sender = Sender(caller)
        await until(sender.accepts)
        file.rename(elsewhere)
        await until(sender.refused)
        file.write_bytes(b"")
        assert await sender.refused(), "another file in its place is not the one that is open"
        problems = (await caller.http.get(f"{node.base}/readyz")).json()["reasons"]
        assert any(f"{file} was removed or replaced while the server ran" in problem for problem in problems)
        elsewhere.rename(file)
        await until(sender.accepts)
        for task_id in sender.accepted:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert "Traceback" not in node.log
