"""Rates, and token buckets of this process for them."""

import math
import threading

from msgspec import Struct

SEND_COST = 10
"""The units that a message to an agent costs its caller."""
LEAST_COST = 1
"""The units that a call costs if no operation performs it: it cannot be read, or a door itself answers it."""
MOST = 20_000
"""Buckets of one kind. Beyond them the least recently used one is dropped: a missing bucket counts as full."""
MINUTE = 60.0
"""Seconds in which an empty bucket becomes full."""
TINY = 1e-9
"""Seconds by which rounding may falsify a sum of times."""


class Rate(Struct, frozen=True):
    """A limit of use: an amount at once, and so much in a minute from then on."""

    per_minute: float
    burst: float

    @property
    def per_second(self) -> float:
        """The amount by which a bucket fills in a second."""
        return self.per_minute / 60

    @property
    def window(self) -> int:
        """The seconds in which an empty bucket becomes full."""
        return max(1, math.ceil(self.burst / self.per_second))


class TokenBuckets:
    """Token buckets by name, each of the size that its caller states. Any thread may use them. An empty bucket fills
    evenly, within a minute. All times are those of one steady clock, in seconds."""

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
