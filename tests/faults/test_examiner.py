"""The assertion at the end of every fault test can fail."""

import sqlite3

import pytest

from tests.faults import examiner
from tests.faults.clients import client
from tests.faults.conftest import Start

pytestmark = pytest.mark.fault


async def test_the_examination_of_fault_tests_finds_a_log_that_lost_an_event(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        task_id = await caller.send("once", seconds=0)
        await caller.state(task_id, "TASK_STATE_COMPLETED")
    file = node.folder / "taskdesk.sqlite3"
    assert examiner.findings(f"sqlite:///{file}") == []
    with sqlite3.connect(file, timeout=10) as connection:
        (row,) = connection.execute("select * from tasks_app_event where seq = 2")
        connection.execute("delete from tasks_app_event where seq = 2")
        connection.commit()
        (finding,) = examiner.findings(f"sqlite:///{file}")
        connection.execute(f"insert into tasks_app_event values ({', '.join('?' * len(row))})", row)  # noqa: S608
    assert finding.startswith(f"log: The log of task {task_id}: events 2 of ")
