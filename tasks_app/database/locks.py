"""Row locks. A lane never blocks on one: the item comes back as LOCKED, and its caller retries with growing pauses.

A lane that waited would hold up every other caller, for as long as a process that is frozen in a transaction.
"""

import time
from collections.abc import Iterable, Iterator

from django.db import OperationalError

SHORTEST, LONGEST = 0.005, 0.25
"""Seconds between two asks: most rows are held for a few milliseconds, some until the database ends a session."""
_LOCK_NOT_AVAILABLE = "55P03"


class LockRefused(OperationalError):
    """A lock on rows of these tasks was refused; or, at the end, was refused for longer than one may ask again."""

    def __init__(self, sentence: str, tasks: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.tasks = frozenset(tasks)


def is_lock_refusal(error: BaseException) -> bool:
    """Tell whether the database did not wait (nowait), or no longer (lock_timeout), for a lock: the transaction is
    undone."""
    return isinstance(error, LockRefused) or getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def pauses(seconds: float) -> Iterator[float]:
    """Yield how long to wait before each further ask. Raises LockRefused when the time is up."""
    ends, pause = time.monotonic() + seconds, SHORTEST
    while (left := ends - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * 2, LONGEST)
    raise LockRefused(f"another transaction has held what this needs for {seconds:g} s")
