"""Limits of owners for a minute: a token bucket for each owner, which fills evenly."""

import threading
from collections.abc import Callable
from datetime import datetime

MAX_OWNERS = 10_000
"""Owners with a bucket. At this number full buckets are dropped: a missing bucket counts as full."""


class Buckets:
    """The buckets for one kind of use. Any thread may use them.

    A use of any size is allowed while the bucket is not empty. It may leave a debt; the next use waits until that is
    paid.
    """

    def __init__(self, per_minute: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self.lock = threading.Lock()
        self.levels: dict[int, tuple[float, datetime]] = {}
        """The level of each owner's bucket, and when it was measured."""

    def wait(self, owner_id: int, now: datetime) -> float:
        """Return the seconds until the owner may use more; 0 if that is now."""
        with self.lock:
            level = self._level(owner_id, now)
        return 0.0 if level > 0 else max(-level * 60 / self.per_minute(), 0.1)

    def use(self, owner_id: int, amount: float, now: datetime) -> bool:
        """Take an amount out of the bucket. Return false, and take nothing, if the bucket is empty."""
        with self.lock:
            if (level := self._level(owner_id, now)) <= 0:
                return False
            if len(self.levels) >= MAX_OWNERS:
                full = self.per_minute()
                self.levels = {owner: entry for owner, entry in self.levels.items() if self._level(owner, now) < full}
            self.levels[owner_id] = level - amount, now
            return True

    def give_back(self, owner_id: int, amount: float, now: datetime) -> None:
        """Return an amount to the bucket that was taken but not used."""
        with self.lock:
            self.levels[owner_id] = self._level(owner_id, now) + amount, now

    def _level(self, owner_id: int, now: datetime) -> float:
        most = self.per_minute()
        level, since = self.levels.get(owner_id, (most, now))
        return min(most, level + max(0.0, (now - since).total_seconds()) * most / 60)
