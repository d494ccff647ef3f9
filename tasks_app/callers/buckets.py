"""Limits of an owner for a minute: a bucket each, which fills evenly."""

import threading
from collections.abc import Callable
from datetime import datetime

MOST_KEPT = 10_000
"""Owners whose buckets are kept; those that have filled up go first."""


class Buckets:
    """The buckets of one kind of use. Any thread may ask.

    A use is allowed while a bucket is not empty, whatever its size: the next one waits until the debt is paid.
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
        """Take so much out of the bucket; False, and nothing is taken, if it is empty."""
        with self.lock:
            if (level := self._level(owner_id, now)) <= 0:
                return False
            if len(self.levels) >= MOST_KEPT:
                most = self.per_minute()
                self.levels = {owner: kept for owner, kept in self.levels.items() if self._level(owner, now) < most}
            self.levels[owner_id] = level - amount, now
            return True

    def give_back(self, owner_id: int, amount: float, now: datetime) -> None:
        """Put back what was taken and not used."""
        with self.lock:
            self.levels[owner_id] = self._level(owner_id, now) + amount, now

    def _level(self, owner_id: int, now: datetime) -> float:
        most = self.per_minute()
        level, since = self.levels.get(owner_id, (most, now))
        return min(most, level + max(0.0, (now - since).total_seconds()) * most / 60)
