"""Lists of an owner with very many tasks, by each filter: what they contain, and how long they take."""

import statistics
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.faults.clients import client, inputs
from tests.faults.conftest import Start
from tests.faults.lister import listed
from tests.faults.nodes import KEY
from tests.faults.rows import COPIES, fill

pytestmark = pytest.mark.fault
ROWS, MANY_ROWS = 3_000, 1_000_000
PAGE, CONNECTIONS = 20, 32


class Filter(NamedTuple):
    """The params of a list, and the condition of the rows that it must contain."""

    params: dict[str, Any]
    condition: str


FILTERS = {
    "all tasks": Filter({}, "true"),
    "by a state": Filter({"status": "TASK_STATE_COMPLETED"}, "state = 'completed'"),
    "by a rare state": Filter({"status": "TASK_STATE_REJECTED"}, "state = 'rejected'"),
    "by a context": Filter({"contextId": "here"}, "context_id = 'here'"),
    "since a time": Filter(
        {"statusTimestampAfter": "2020-01-01T00:00:00Z"}, "status_at > '2020-01-01T00:00:00Z'::timestamptz"
    ),
    "by a state and a context": Filter(
        {"status": "TASK_STATE_REJECTED", "contextId": "here"}, "state = 'rejected' and context_id = 'here'"
    ),
}


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.long)], ids=["short", "long"])
async def test_a_list_by_each_filter_has_the_newest_tasks_that_match(
    start: Start, postgres: str, rows: int, record_property: Any
) -> None:
    node = await start(DATABASE_URL=postgres, A2A_TASK_DAYS="3000", A2A_LOG_CALLS="0")  # as in production
    seconds = 0.2 if rows == ROWS else 3.0
    async with client(node) as caller:
        task = (await caller.result("SendMessage", {"message": inputs(word="hello")}, agent="echo"))["task"]
        fill(postgres, task["id"], rows)
        for name, (params, condition) in FILTERS.items():
            wish = params | {"pageSize": PAGE}
            page = (await caller.result("ListTasks", wish))["tasks"]
            query = f"select id from tasks_app_task where {condition} order by status_at desc, id desc limit {PAGE}"  # noqa: S608
            with psycopg.connect(postgres) as connection:
                expected = [id for (id,) in connection.execute(query.encode())]
            assert [listed_task["id"] for listed_task in page] == expected, name
            alone = await listed(node, KEY, seconds, [wish])
            # Equal lists that wait are read once. No task has so many messages, so that the answers are alike.
            apart = await listed(node, KEY, seconds, [wish | {"historyLength": 9 + n} for n in range(CONNECTIONS)])
            equal = await listed(node, KEY, seconds, [wish] * CONNECTIONS)
            rates = [round(len(spans) / seconds) for spans in (apart, equal)]
            label = f"p50 alone in ms, different and equal lists a second from {CONNECTIONS}"
            record_property(f"{rows} tasks, {name}: {label}", (round(statistics.median(alone) * 1_000, 1), *rates))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(COPIES)
