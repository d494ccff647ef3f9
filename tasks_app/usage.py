"""The usage history of zones: a row for each call that executes a task.

The row of a new task is stored with the task. Any other is written behind the answer. A row that cannot be written is
logged and counts as lost; it never fails the answer.
"""

import logging
from collections.abc import Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tasks_app.database.bridge import bridge
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import UsageRow
from tasks_app.database.tables import USAGE
from tasks_app.database.work import Work

log = logging.getLogger(__name__)


class RecordUsage(Work[None], Struct, frozen=True):
    """A row of the history to write."""

    lane = "write"

    row: UsageRow

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        try:
            with prepared() as cursor:
                USAGE.write(cursor, [item.row for item in items])
        except Exception:
            log.exception("%d rows of the usage history were not written", len(items))
        return [None for _ in items]


def of_task(row: UsageRow, task_id: str) -> UsageRow:
    """Return the row of a call that got this task. Without a correlation id of its own the call has the task's id."""
    return replace(row, task_id=task_id, correlation_id=row.correlation_id or task_id)


def record(row: UsageRow) -> None:
    """Write a row soon."""
    bridge.put(RecordUsage(row))
