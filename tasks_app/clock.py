"""The one place that reads the time of day, and it is the database's: all processes of a database share one time.

`now` counts from a measured moment with a clock that is never set. The moment is measured against the database's clock
whenever a connection opens and with every sweep. So a machine whose clock is wrong, or is set while a process runs,
writes the same times and ids as its neighbours.
"""

import time
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created

APART = 60.0
"""Seconds between this machine's clock and the database's from which this machine's counts as wrong."""
SETTLING = 3600.0
"""Seconds for which a clock that was set by more than that is not trusted to delete by."""
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that is never set, and that goes on while the machine sleeps."""
_SECOND = 1_000_000_000
_read = time.clock_gettime_ns


def _ticks() -> int:
    return _read(_STEADY)


class Anchor:
    """The distance, in nanoseconds, from the steady clock to the time of day, as it was measured last."""

    def __init__(self) -> None:
        self.shift = time.time_ns() - _ticks()
        """To the database's time of day."""
        self.wall = self.shift
        """To this machine's time of day."""
        self.jump = 0.0
        """Seconds by which this machine's clock was set, when it was set last by more than APART."""
        self.jumped: int | None = None
        """When that was noticed, on the steady clock."""

    @property
    def off(self) -> float:
        """Seconds by which this machine's clock is ahead of the database's."""
        return (self.wall - self.shift) / _SECOND

    def measure(self, over: Any = connection) -> None:
        """Read both clocks, over this thread's connection unless another one is given."""
        began = _ticks()
        database = _database_ns(over)
        ended, wall = _ticks(), time.time_ns()
        shift = (wall if database is None else database) - (began + ended) // 2
        # The answer is from some moment in between: a difference of less than half of that proves nothing.
        if abs(shift - self.shift) > (ended - began) // 2:
            self.shift = shift
        jump = (wall - ended - self.wall) / _SECOND
        if abs(jump) > APART:
            self.jump, self.jumped = jump, ended
        self.wall = wall - ended

    def doubts(self) -> list[str]:
        """Return sentences that say why this process must not delete by its clock; empty when it may."""
        found = []
        if abs(self.off) > APART:
            found.append(
                f"clock: this machine's clock is {_distance(self.off)} the database's, so this process "
                "deletes nothing; set the clock of the one that is wrong"
            )
        if self.jumped is not None and _ticks() - self.jumped < SETTLING * _SECOND:
            found.append(
                f"clock: this machine's clock was set by {self.jump:+.0f} s, so this process deletes nothing for "
                f"{SETTLING / 60:.0f} minutes"
            )
        return found


def _distance(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


anchor = Anchor()
"""This process's."""


def now() -> datetime:
    """Return the database's time of day, aware, in UTC, without asking the database."""
    # Called five times a send: what _ticks() does is here itself.
    return datetime.fromtimestamp((_read(_STEADY) + anchor.shift) / _SECOND, UTC)


def milliseconds() -> int:
    """Return the same time in milliseconds since 1970, for ids."""
    return (_read(_STEADY) + anchor.shift) // 1_000_000


def shared() -> datetime:
    """Return the time of day as the database says it now. On SQLite that is the time of the only machine there is."""
    found = _database_ns(connection)
    return now() if found is None else datetime.fromtimestamp(found / _SECOND, UTC)


def _database_ns(over: Any) -> int | None:
    """Return nanoseconds since 1970 by PostgreSQL's clock; None on SQLite, which has none of its own."""
    if over.vendor != "postgresql":
        return None
    with over.cursor() as cursor:
        cursor.execute("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        found: int = cursor.fetchone()[0]
    return found * 1000


def _measure(connection: Any, **_: Any) -> None:
    """Set the time right before anything is written over a new connection."""
    if connection.vendor == "postgresql":
        anchor.measure(connection)


connection_created.connect(_measure)
