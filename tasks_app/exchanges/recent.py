"""The calls of the last minute, as `GET /metrics` shows them in JSON: their number, and the time of their answers.

Times are kept as numbers of calls by steps of time, so that the memory does not grow with the calls.
"""

import threading
import time
from collections import Counter, deque

from msgspec import Struct, field

WINDOW = 60
"""Seconds that are looked back."""
STEPS = 8
"""Steps in which a time doubles. A time is reported as the end of its step, which is at most an eighth more."""


class Second(Struct):
    """The calls that were answered within one second."""

    number: int
    calls: int = 0
    errors: int = 0
    time_us: int = 0
    """The time of all timed calls together."""
    steps: Counter[int] = field(default_factory=Counter)
    """The number of timed calls by the step of their time."""


class Summary(Struct, frozen=True, kw_only=True):
    """The calls of the window. Times are in milliseconds, and 0 if there was no call."""

    per_second: float
    answered_per_second: float
    """Calls without an error in a second."""
    average_ms: float
    p95_ms: float
    """The time within which 95 of 100 calls were answered."""


class RecentCalls:
    """The calls of one process. Any thread may add one."""

    def __init__(self, since: float) -> None:
        self.since = since
        """The time on the monotonic clock from which calls are counted."""
        self._seconds: deque[Second] = deque()
        self._lock = threading.Lock()

    def add(self, at: float, duration_us: int | None, *, failed: bool) -> None:
        """Add a call that was answered at this time of the monotonic clock. One without a duration is not timed."""
        number = int(at)
        with self._lock:
            if not self._seconds or self._seconds[-1].number < number:
                self._seconds.append(Second(number))
                while self._seconds[0].number <= number - WINDOW:
                    self._seconds.popleft()
            second = self._seconds[-1]
            second.calls += 1
            second.errors += failed
            if duration_us is not None:
                second.time_us += duration_us
                second.steps[_step(duration_us)] += 1

    def summary(self, at: float) -> Summary:
        """Return the calls of the last minute as of this time of the monotonic clock."""
        with self._lock:
            seconds = [one for one in self._seconds if one.number > int(at) - WINDOW]
            steps = sum((one.steps for one in seconds), Counter[int]())
            calls, errors = sum(one.calls for one in seconds), sum(one.errors for one in seconds)
            time_us = sum(one.time_us for one in seconds)
        span = min(WINDOW, max(1.0, at - self.since))
        return Summary(
            per_second=round(calls / span, 2),
            answered_per_second=round((calls - errors) / span, 2),
            average_ms=round(time_us / 1000 / max(1, steps.total()), 1),
            p95_ms=round(_end_of_part(steps, 0.95) / 1000, 1),
        )


def _step(duration_us: int) -> int:
    """Return the step of a time: the octave of its bits, and its part of the octave."""
    octave = max(duration_us, 1).bit_length() - 1
    return octave * STEPS + ((max(duration_us, 1) - (1 << octave)) * STEPS >> octave)


def _end_of_part(steps: Counter[int], part: float) -> float:
    """Return the microseconds within which this part of the calls was answered."""
    rest = part * steps.total()
    for step, number in sorted(steps.items()):
        rest -= number
        if rest <= 0:
            octave, place = divmod(step + 1, STEPS)
            return (1 << octave) * (1 + place / STEPS)
    return 0.0


recent_calls = RecentCalls(time.monotonic())
"""The calls of this process."""
