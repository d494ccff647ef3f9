"""A row that somebody else holds. No lane waits for one: whoever needs it is told so, and asks again.

A lane that waited would hold up everybody, for as long as a process that is frozen in a transaction.
"""

import time
from collections.abc import Iterable, Iterator

from django.db import OperationalError
from msgspec import Struct

SHORTEST, LONGEST = 0.005, 0.25
"""Seconds between two asks: most rows are held for a few milliseconds, some until the database ends a session."""
_LOCK_NOT_AVAILABLE = "55P03"


class Locked(Struct, frozen=True):
    """Somebody else holds what it needs, and nothing of it was done: ask again."""


LOCKED = Locked()


class Held(OperationalError):
    """Somebody else holds rows of these tasks; or, at the end, held something for longer than one may ask again."""

    def __init__(self, sentence: str, tasks: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.tasks = frozenset(tasks)


def refused(error: BaseException) -> bool:
    """The database did not wait (nowait), or no longer (lock_timeout), for a lock: the transaction is undone."""
    return isinstance(error, Held) or getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def pauses(seconds: float) -> Iterator[float]:
    """How long to wait before each further ask. Raises Held when the time is up."""
    ends, pause = time.monotonic() + seconds, SHORTEST
    while (left := ends - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * 2, LONGEST)
    raise Held(f"somebody else has held what this needs for {seconds:g} s")
