"""Row locks. A lane never blocks on one: the item returns LOCKED, and its caller retries with growing pauses.

A lane that waited for a process that is frozen in a transaction would delay all other callers.
"""

import time
from collections.abc import Iterable, Iterator

from django.db import OperationalError

from tasks_app.database.sessions import sqlstate

SHORTEST, LONGEST = 0.005, 0.25
"""Seconds between two retries: most locks last a few milliseconds, some until the database ends a session."""
_LOCK_NOT_AVAILABLE = "55P03"


class LockRefused(OperationalError):
    """The refusal of a lock on rows of these tasks, once or for the whole patience of the caller."""

    def __init__(self, sentence: str, tasks: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.tasks = frozenset(tasks)


def is_lock_refusal(error: BaseException) -> bool:
    """Return whether the database refused a lock, at once (nowait) or after a time (lock_timeout). The transaction is
    rolled back."""
    return isinstance(error, LockRefused) or sqlstate(error) == _LOCK_NOT_AVAILABLE


def pauses(seconds: float) -> Iterator[float]:
    """Yield the seconds to wait before each retry. Raises LockRefused when the time is up."""
    ends, pause = time.monotonic() + seconds, SHORTEST
    while (rest := ends - time.monotonic()) > 0:
        yield min(pause, rest)
        pause = min(pause * 2, LONGEST)
    raise LockRefused(f"another transaction has locked the rows for {seconds:g} s")
