"""Snapshots: a task's row holds the task as of one of its events. They spare readers the fold of a long log."""

from collections.abc import Sequence
from typing import Self

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from a2a.documents import TaskDocument
from a2a.states import QUIET
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Work
from tasks_app.event_log.read import ReadTask, read_many
from tasks_app.models import Task

_TASK = Task._meta.db_table


class Refresh(Work[None], Struct, frozen=True, kw_only=True):
    """Fold the events after a task's snapshot into it."""

    lane = "write"

    task_id: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        """Fold each task. A snapshot is never replaced by an older one."""
        ids = sorted({item.task_id for item in items})
        reads = [read for read in read_many([ReadTask(task_id=task_id, sight=None) for task_id in ids]) if read]
        with transaction.atomic(), connection.cursor() as cursor:
            for read in reads:
                write_snapshot(cursor, read.document)
        return [None for _ in items]


ROW_CHARACTERS = 262_144
"""Characters of events of a task whose snapshot is refreshed while it works, at most, on SQLite.

SQLite rewrites the whole row with each change, snapshot included: every append to a task of megabytes would write
megabytes. PostgreSQL leaves large columns where they are.
"""


def stale(seq: int, snapshot_seq: int, state: str | None, size: int = 0) -> bool:
    """Return whether to refresh the snapshot: when the task becomes quiet, and when the log has grown by half since.

    Growth by half keeps the total work of all refreshes linear in the number of events. `size` is the task's size on a
    database that rewrites the whole row with each change, and 0 on others.
    """
    if size > ROW_CHARACTERS and state not in QUIET:
        return False
    return seq > snapshot_seq and ((state is not None and state in QUIET) or seq - snapshot_seq > max(64, seq // 2))


def write_snapshot(cursor: CursorWrapper, document: TaskDocument) -> None:
    """Store a snapshot unless a newer one is stored, on either database. A row that another transaction has locked is
    skipped: the next refresh writes it."""
    free = "for no key update skip locked" if on_postgres() else ""
    cursor.execute(
        f"update {_TASK} set snapshot_seq = %s, joined_seq = %s, snapshot_status = %s, artifacts = %s, history = %s "
        f"where id = (select id from {_TASK} where id = %s and snapshot_seq < %s {free})",
        (document.seq, document.seq, document.status, document.artifacts, document.history, document.id, document.seq),
    )
