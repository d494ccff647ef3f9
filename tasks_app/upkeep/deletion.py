"""Deletion of one kind of row, step by step: the connection of a step, its number of rows, and its lock."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, Self

from django.db import connection
from msgspec import Struct

from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Do, R, Work
from tasks_app.upkeep.portions import Portion
from tasks_app.upkeep.row_kinds import RowKind

MIN_ROWS, MAX_ROWS = 200, 5000
"""Rows of a step on PostgreSQL. In smaller steps the round trips would take most of the time on a busy machine."""
SQLITE_MIN_ROWS, SQLITE_MAX_ROWS = 10, 500
"""Rows of a step on SQLite, where every writer waits for the step, even on a slow disk."""
GROWTH = 1.3
"""The factor by which a step may be larger than the last one."""
FIRST_ROWS = 200
"""Rows of the first step."""
POSTGRES_SECONDS = 0.05
"""Target duration of a step on PostgreSQL, beside the writers."""
SQLITE_SECONDS = 0.005
"""Target duration of a step on SQLite, in the writers' own lane."""
LOCK = 0x7461736B
"""The advisory lock of the one process that deletes."""
_TAKE_LOCK = (
    "select pg_try_advisory_lock(%s), set_config('idle_session_timeout', '60s', false), "
    "set_config('synchronous_commit', 'off', false)"
)


class DoBesideWriters(Work[R], Struct, Generic[R], frozen=True):
    """A function to run on a connection of its own, on PostgreSQL."""

    lane = "retention"

    function: Callable[[], R]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[R]:
        return [item.function() for item in items]


def run_on_lane(function: Callable[[], R]) -> R:
    """Run a function on the lane where it disturbs writers least: SQLite has one writer, so there it is their lane."""
    return bridge.do(DoBesideWriters(function) if on_postgres() else Do(function), patience=0)


def take_lock() -> bool:
    """Take the lock of the one process that deletes, until `release_lock` or the end of this lane's session.

    A frozen process would keep the lock, so the server ends the session of this lane after a minute without a
    statement. Commits on this lane do not wait for the disk: a deletion lost in a crash is done again.
    """
    if not on_postgres():
        return True
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_LOCK, (LOCK,))
        is_ours: bool = cursor.fetchone()[0]
    return is_ours


def release_lock() -> None:
    """Release the lock of the one process that deletes."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_unlock_all()")


class Step(Struct, frozen=True):
    """The result of one step, and how long the database took for it."""

    portion: Portion
    seconds: float


class Deletion:
    """The deletion of rows of one kind, in steps whose size follows from the speed of the last one."""

    def __init__(self, kind: RowKind) -> None:
        self.kind = kind
        self.place = ""
        self.rows = FIRST_ROWS

    def delete_next(self, before: datetime, *, alone: bool = True) -> Step | None:
        """Delete the next rows older than the time. With `alone`, return None while another process deletes."""
        step = run_on_lane(partial(self._delete_next, before, alone))
        if step is not None:
            self.place = step.portion.place
            self._adapt(step)
        return step

    def _delete_next(self, before: datetime, alone: bool) -> Step | None:
        if alone and not take_lock():
            return None
        began = time.monotonic()
        portion = self.kind.delete(before, self.place, self.rows)
        return Step(portion, time.monotonic() - began)

    def _adapt(self, step: Step) -> None:
        """Bring the number of rows nearer to the target duration.

        A fast step that ran out of rows says nothing about larger steps, so only a full one makes the next one larger.
        """
        target = POSTGRES_SECONDS if on_postgres() else SQLITE_SECONDS
        factor = min(GROWTH, max(0.5, target / max(step.seconds, 0.0001)))
        if factor < 1 or step.portion.more:
            fewest, most = (MIN_ROWS, MAX_ROWS) if on_postgres() else (SQLITE_MIN_ROWS, SQLITE_MAX_ROWS)
            self.rows = min(most, max(fewest, int(self.rows * factor)))
