"""The time of day, which is that of the database: all processes of a database share it. Other modules get it
from here.

`now` is a steady clock of this machine plus a shift. The shift is measured against the database's clock whenever a
connection opens, and with every sweep. So a machine whose clock is wrong, or is set while a process runs, still writes
the same times and ids as its neighbours.
"""

import time
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created

APART = 60.0
"""The difference in seconds between the clocks of this machine and of the database from which one of them is wrong."""
SETTLING = 3600.0
"""Seconds for which nothing is deleted after a clock was set by more than APART."""
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that is never set, and goes on while the machine sleeps."""
_SECOND = 1_000_000_000
_read = time.clock_gettime_ns


def _ticks() -> int:
    return _read(_STEADY)


class Anchor:
    """The last measurement: the nanoseconds from the steady clock to the time of day."""

    def __init__(self) -> None:
        self.shift = time.time_ns() - _ticks()
        """Nanoseconds from the steady clock to the database's time of day."""
        self.wall = self.shift
        """Nanoseconds from the steady clock to this machine's time of day."""
        self.jump = 0.0
        """Seconds by which this machine's clock was last set, if by more than APART."""
        self.jumped: int | None = None
        """The time at which that was noticed, on the steady clock."""
        self.is_measured = False
        """Whether the clock of a database was read, so that `shift` is its own."""
        self.database_jump = 0.0
        """Seconds by which the database's clock was last set, if by more than APART."""
        self.database_jumped: int | None = None
        """The time at which that was noticed, on the steady clock."""

    @property
    def off(self) -> float:
        """Seconds by which this machine's clock is ahead of the database's."""
        return (self.wall - self.shift) / _SECOND

    def measure(self, over: Any = connection) -> None:
        """Read both clocks, over this thread's connection or over the one that is given."""
        began = _ticks()
        database = _database_ns(over)
        ended, wall = _ticks(), time.time_ns()
        shift = (wall if database is None else database) - (began + ended) // 2
        # The database read its clock at some moment of the round trip. A difference of less than half a round trip may
        # come from that alone, and is ignored.
        step = shift - self.shift
        if abs(step) > (ended - began) // 2:
            self.shift = shift
            if self.is_measured and abs(step) > APART * _SECOND:
                self.database_jump, self.database_jumped = step / _SECOND, ended
        self.is_measured = self.is_measured or database is not None
        jump = (wall - ended - self.wall) / _SECOND
        if abs(jump) > APART:
            self.jump, self.jumped = jump, ended
        self.wall = wall - ended

    def doubts(self) -> list[str]:
        """Return sentences that say why this process must not delete by its clock; none when it may."""
        sentences = []
        if abs(self.off) > APART:
            sentences.append(
                f"clock: this machine's clock is {_distance(self.off)} the database's, so this process "
                "deletes nothing; set the clock that is wrong"
            )
        steps = [
            ("this machine's", self.jump, self.jumped),
            ("the database's", self.database_jump, self.database_jumped),
        ]
        sentences += [
            f"clock: {whose} clock was set by {seconds:+.0f} s, so this process deletes nothing for "
            f"{SETTLING / 60:.0f} minutes"
            for whose, seconds, noticed in steps
            if noticed is not None and _ticks() - noticed < SETTLING * _SECOND
        ]
        return sentences


def _distance(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


anchor = Anchor()
"""The measurement of this process."""


def now() -> datetime:
    """Return the database's time of day, aware, in UTC, without asking the database."""
    # This runs five times for each send, so the body of _ticks() is repeated here.
    return datetime.fromtimestamp((_read(_STEADY) + anchor.shift) / _SECOND, UTC)


def milliseconds() -> int:
    """Return the time of `now` in milliseconds since 1970, for ids."""
    return (_read(_STEADY) + anchor.shift) // 1_000_000


def shared() -> datetime:
    """Ask the database for the time of day. On SQLite that is the clock of the only machine there is."""
    time_ns = _database_ns(connection)
    return now() if time_ns is None else datetime.fromtimestamp(time_ns / _SECOND, UTC)


def _database_ns(over: Any) -> int | None:
    """Return nanoseconds since 1970 by PostgreSQL's clock; None on SQLite, which has no clock of its own."""
    if over.vendor != "postgresql":
        return None
    with over.cursor() as cursor:
        cursor.execute("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        microseconds: int = cursor.fetchone()[0]
    return microseconds * 1000


def _measure(connection: Any, **_: Any) -> None:
    """Measure the clock before anything is written over a new connection."""
    if connection.vendor == "postgresql":
        anchor.measure(connection)


connection_created.connect(_measure)
