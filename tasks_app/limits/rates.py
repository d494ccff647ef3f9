"""Rates, and token buckets of this process for them."""

import math
import threading
from collections.abc import Callable

from msgspec import Struct

SEND_COST = 10
"""The units that a message to an agent costs its caller."""
MOST = 20_000
"""Buckets of one kind. Beyond them the least recently used one is dropped: a missing bucket counts as full."""


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
    """Token buckets by name. Any thread may use them. All times are those of one steady clock, in seconds."""

    def __init__(self, rate: Callable[[], Rate], most: int = MOST) -> None:
        self.rate = rate
        self.most = most
        self.lock = threading.Lock()
        self.levels: dict[str, tuple[float, float]] = {}
        """The level of each bucket and the time of its measurement, the least recently used bucket first."""

    def wait(self, name: str, now: float) -> float:
        """Return the seconds until the bucket has a token; 0 if it has one."""
        rate = self.rate()
        with self.lock:
            level = _fill(self.levels.get(name, (rate.burst, now)), rate, now)
        return 0.0 if level >= 1 else (1 - level) / rate.per_second

    def take(self, name: str, now: float) -> float:
        """Take a token out of the bucket; return 0, or the seconds until it has one if it has none now."""
        rate = self.rate()
        level, per_second = rate.burst, rate.per_minute / 60
        with self.lock:
            entry = self.levels.pop(name, None)
            if entry is not None:
                # Each call comes here, so this repeats the code of _fill() instead of calling it.
                filled = entry[0] + (now - entry[1]) * per_second if now > entry[1] else entry[0]
                level = min(level, filled)
            if level < 1:
                self.levels[name] = entry or (level, now)
                return (1 - level) / per_second
            if entry is None and len(self.levels) >= self.most:
                del self.levels[next(iter(self.levels))]
            self.levels[name] = level - 1, now
            return 0.0

    def clear(self) -> None:
        """Make all buckets full."""
        with self.lock:
            self.levels.clear()


def _fill(entry: tuple[float, float], rate: Rate, now: float) -> float:
    """Return the level of a bucket now, by its level at an earlier time."""
    level, since = entry
    return min(rate.burst, level + (now - since) * rate.per_minute / 60) if now > since else level
