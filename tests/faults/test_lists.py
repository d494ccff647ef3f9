"""Lists of an owner with very many tasks, by each filter. ``make bench`` measures how long they take."""

import psycopg
import pytest

from tests.faults.clients import client, inputs
from tests.faults.conftest import Start
from tests.faults.rows import COPIES, FILTERS, fill

pytestmark = pytest.mark.fault
ROWS, MANY_ROWS = 3_000, 1_000_000
PAGE = 20


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.long)], ids=["short", "long"])
async def test_a_list_by_each_filter_has_the_newest_tasks_that_match(start: Start, postgres: str, rows: int) -> None:
    node = await start(DATABASE_URL=postgres, A2A_TASK_DAYS="3000")
    async with client(node) as caller:
        task = (await caller.result("SendMessage", {"message": inputs(word="hello")}, agent="echo"))["task"]
        fill(postgres, task["id"], rows)
        for name, (params, condition) in FILTERS.items():
            page = (await caller.result("ListTasks", params | {"pageSize": PAGE}))["tasks"]
            query = f"select id from tasks_app_task where {condition} order by status_at desc, id desc limit {PAGE}"  # noqa: S608
            with psycopg.connect(postgres) as connection:
                expected = [id for (id,) in connection.execute(query.encode())]
            assert expected, name
            assert [listed_task["id"] for listed_task in page] == expected, name
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(COPIES)
