"""Limits for a minute: a token bucket for each owner, or each address, which fills evenly."""

import threading
from collections.abc import Callable, Hashable
from datetime import datetime

MAX_BUCKETS = 10_000
"""Buckets that are kept. At this number full buckets are dropped: a missing bucket counts as full."""


class Buckets:
    """The buckets for one kind of use. Any thread may use them.

    A use of any size is allowed while the bucket is not empty. It may leave a debt; the next use waits until that is
    paid.
    """

    def __init__(self, per_minute: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self.lock = threading.Lock()
        self.levels: dict[Hashable, tuple[float, datetime]] = {}
        """The level of each bucket, and when it was measured. The key is an owner, or an address."""

    def wait(self, key: Hashable, now: datetime) -> float:
        """Return the seconds until more may be used; 0 if that is now."""
        with self.lock:
            level = self._level(key, now)
        return 0.0 if level > 0 else max(-level * 60 / self.per_minute(), 0.1)

    def use(self, key: Hashable, amount: float, now: datetime) -> bool:
        """Take an amount out of the bucket. Return false, and take nothing, if the bucket is empty."""
        with self.lock:
            if (level := self._level(key, now)) <= 0:
                return False
            if len(self.levels) >= MAX_BUCKETS:
                full = self.per_minute()
                self.levels = {each: entry for each, entry in self.levels.items() if self._level(each, now) < full}
            self.levels[key] = level - amount, now
            return True

    def give_back(self, key: Hashable, amount: float, now: datetime) -> None:
        """Return an amount to the bucket that was taken but not used."""
        with self.lock:
            self.levels[key] = self._level(key, now) + amount, now

    def _level(self, key: Hashable, now: datetime) -> float:
        most = self.per_minute()
        level, since = self.levels.get(key, (most, now))
        return min(most, level + max(0.0, (now - since).total_seconds()) * most / 60)
