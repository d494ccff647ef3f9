"""Token buckets of this process, by owner or by address. An empty bucket fills evenly, within a minute."""

import threading
from collections.abc import Callable, Hashable
from datetime import datetime

MOST = 20_000
"""Buckets of one kind. Beyond them the least recently used one is dropped: a missing bucket counts as full."""
MAX_BUCKETS = 10_000
"""Buckets that are kept. At this number full buckets are dropped: a missing bucket counts as full."""
MINUTE = 60.0
"""Seconds in which an empty bucket becomes full."""
TINY = 1e-9
"""Seconds by which rounding may falsify a sum of times."""


class DebtBuckets:
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
            return self._wait(key, now)

    def waits(self, now: datetime) -> dict[Hashable, float]:
        """Return the seconds until more may be used, for each bucket that is empty."""
        with self.lock:
            # A level only grows until the next use, so most buckets need no look at the time.
            empty = [key for key, (level, _) in self.levels.items() if level <= 0]
            return {key: wait for key in empty if (wait := self._wait(key, now))}

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

    def _wait(self, key: Hashable, now: datetime) -> float:
        level = self._level(key, now)
        return 0.0 if level > 0 else max(-level * 60 / self.per_minute(), 0.1)

    def _level(self, key: Hashable, now: datetime) -> float:
        most = self.per_minute()
        level, since = self.levels.get(key, (most, now))
        return min(most, level + max(0.0, (now - since).total_seconds()) * most / 60)


class TokenBuckets:
    """Buckets by name, each of the size that its caller states. Any thread may use them.

    A use takes one token, and is refused while there is none. All times are those of one steady clock, in seconds.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.lock = threading.Lock()
        self.full_at: dict[str, float] = {}
        """The time at which each bucket is full again, the least recently used bucket first."""

    def wait(self, name: str, size: int, now: float) -> float:
        """Return the seconds until a bucket of so many tokens has one; 0 if it has one."""
        with self.lock:
            full_at = self.full_at.get(name, now)
        wait = full_at + MINUTE / size - now - MINUTE
        return wait if wait > TINY else 0.0

    def take(self, name: str, size: int, now: float) -> float:
        """Take a token out of a bucket of so many. Return 0, or the seconds until it has one if it has none now."""
        with self.lock:
            full_at = self.full_at.pop(name, None)
            if full_at is None:
                if len(self.full_at) >= self.most:
                    del self.full_at[next(iter(self.full_at))]
                full_at = now
            elif full_at < now:
                full_at = now
            # A bucket that lacks all its tokens is full in a minute.
            wait = full_at + MINUTE / size - now - MINUTE
            if wait > TINY:
                self.full_at[name] = full_at
                return wait
            self.full_at[name] = full_at + MINUTE / size
            return 0.0

    def clear(self) -> None:
        """Make all buckets full."""
        with self.lock:
            self.full_at.clear()
