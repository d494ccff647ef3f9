"""Many tasks of one owner in a PostgreSQL database: copies of one task, without a log; and lists of them."""

from typing import Any, NamedTuple

import psycopg

MANY = """
insert into tasks_app_task ({columns})
select {values} from tasks_app_task t, generate_series(1, %s) n where t.id = %s
"""
CHANGED = {
    "id": "'01900000-' || lpad(to_hex(n / 65536), 4, '0') || '-7000-8000-' || lpad(to_hex(n), 12, '0')",
    "state": "case when n % 1000 = 7 then 'rejected' when n % 10 = 3 then 'failed' else 'completed' end",
    "agent": "case when n % 1000 = 9 then 'rare' else 'echo' end",
    "context_id": "case when n % 2 = 1 then 'here' else 'there-' || n end",
    "status_at": "t.status_at - n * interval '1 second'",
}


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
"""A list by each filter, each of which has some of the copies."""
COPIES = "delete from tasks_app_task where id like '01900000-%'"
"""Deletes the copies. The doctor would find that they have no log."""


def fill(database: str, task_id: str, rows: int) -> None:
    """Copy a task so many times; the copies have no log, and are gone before the database is examined."""
    with psycopg.connect(database, autocommit=True) as connection:
        names = "select column_name from information_schema.columns where table_name = 'tasks_app_task'"
        columns = [name for (name,) in connection.execute(names)]
        values = ", ".join(CHANGED.get(name, f"t.{name}").replace("%", "%%") for name in columns)
        statement = MANY.format(columns=", ".join(columns), values=values)
        connection.execute(statement.encode(), [rows, task_id])
        connection.execute("vacuum analyze tasks_app_task")
