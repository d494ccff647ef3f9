"""The usage history of zones: a row for each call that executes a task, written behind the answer.

A row that cannot be written is logged and counts as lost. It never fails the answer.
"""

import logging
from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Work
from tasks_app.models import Usage

log = logging.getLogger(__name__)


class RecordUsage(Work[None], Struct, frozen=True):
    """A row of the history to write."""

    lane = "write"

    row: Usage

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        try:
            Usage.objects.bulk_create([item.row for item in items], ignore_conflicts=True)
        except Exception:
            log.exception("%d rows of the usage history were not written", len(items))
        return [None for _ in items]


def record(row: Usage) -> None:
    """Write a row soon."""
    bridge.put(RecordUsage(row))
