"""Steps of deleting: where each runs, how many rows it takes, how long the pause behind it is."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, Self

from django.db import connection
from msgspec import Struct

from tasks_app.database.bridge import bridge
from tasks_app.database.rows import on_postgres
from tasks_app.database.work import Do, R, Work
from tasks_app.upkeep.kinds import Batch, Heap

FEWEST, MOST = 200, 5000
"""Rows of a step on PostgreSQL. A smaller one would be all round trips, which are slow where the machine is busy."""
FEWEST_SQLITE, MOST_SQLITE = 10, 500
"""Rows of a step on SQLite, where every writer waits for the step, also when the disk is slow just then."""
GROWTH = 1.3
"""The factor by which a step may be larger than the one before it."""
FIRST = 200
"""Rows of the first step."""
POSTGRES_SECONDS = 0.05
"""How long a step should take beside the writers."""
SQLITE_SECONDS = 0.005
"""How long a step should take in the writers' own lane."""
LOCK = 0x7461736B
"""The advisory lock of the one process that deletes."""
_MINE = (
    "select pg_try_advisory_lock(%s), set_config('idle_session_timeout', '60s', false), "
    "set_config('synchronous_commit', 'off', false)"
)


class Forget(Work[R], Struct, Generic[R], frozen=True):
    """A step, on PostgreSQL: on a connection of its own, beside the writers."""

    lane = "retention"

    function: Callable[[], R]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[R]:
        return [item.function() for item in items]


def on_lane(function: Callable[[], R]) -> R:
    """Run a step where it disturbs the writers least. SQLite has one writer, so there it is among them."""
    return bridge.do(Forget(function) if on_postgres() else Do(function), patience=0)


def is_mine() -> bool:
    """Take the lock of the one process that deletes, for as long as this lane's session lasts or until `let_go`.

    A process that is frozen must not keep it: the server ends a session of this lane that says nothing for a minute.
    Nor need anybody wait until a deletion is on the disk: the next process does it again.
    """
    if not on_postgres():
        return True
    with connection.cursor() as cursor:
        cursor.execute(_MINE, (LOCK,))
        mine: bool = cursor.fetchone()[0]
    return mine


def let_go() -> None:
    """Give the lock back."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_unlock_all()")


class Stepped(Struct, frozen=True):
    """A step that was made."""

    batch: Batch
    seconds: float
    """How long the database took for it."""


class Steps:
    """The way through one heap."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.place = ""
        self.rows = FIRST

    def step(self, before: datetime, *, alone: bool = True) -> Stepped | None:
        """Delete the next rows; None if another process is at it and this one is not to be the second."""
        stepped: Stepped | None = on_lane(partial(self._step, before, alone))
        if stepped is not None:
            self.place = stepped.batch.place
            self._adapt(stepped)
        return stepped

    def _step(self, before: datetime, alone: bool) -> Stepped | None:
        if alone and not is_mine():
            return None
        began = time.monotonic()
        batch = self.heap.delete(before, self.place, self.rows)
        return Stepped(batch, time.monotonic() - began)

    def _adapt(self, stepped: Stepped) -> None:
        wish = POSTGRES_SECONDS if on_postgres() else SQLITE_SECONDS
        factor = min(GROWTH, max(0.5, wish / max(stepped.seconds, 0.0001)))
        if factor < 1 or stepped.batch.more:
            fewest, most = (FEWEST, MOST) if on_postgres() else (FEWEST_SQLITE, MOST_SQLITE)
            self.rows = min(most, max(fewest, int(self.rows * factor)))
