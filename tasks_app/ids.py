"""Ids: time-ordered UUIDs (version 7, RFC 9562), as text."""

import os
from collections import deque
from datetime import UTC, datetime

from tasks_app.clock import milliseconds

_DIGITS = 20
"""Random hexadecimal digits an id."""
_BLOCK = 256
"""Ids' worth of randomness taken from the system at once: asking it costs more than all else here."""
_random: deque[str] = deque()
os.register_at_fork(after_in_child=_random.clear)


def uuid7() -> str:
    """Ordered by the millisecond, random below it; a help for indexes, never a secret."""
    try:
        random = _random.pop()
    except IndexError:
        digits = os.urandom(_BLOCK * _DIGITS // 2).hex()
        _random.extend(digits[start : start + _DIGITS] for start in range(_DIGITS, len(digits), _DIGITS))
        random = digits[:_DIGITS]
    head = f"{milliseconds():012x}"
    # Version 7 in the 13th digit, variant 10 in the 17th.
    return f"{head[:8]}-{head[8:]}-7{random[:3]}-{_VARIANT[random[3]]}{random[4:7]}-{random[7:19]}"


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def uuid7_at(time_: datetime) -> str:
    """The lowest id of that millisecond: ids below it are older."""
    head = f"{max(0, int(time_.timestamp() * 1000)):012x}"
    return f"{head[:8]}-{head[8:]}-7000-8000-000000000000"


def time_of(id: str) -> datetime | None:
    """Return the time, to the millisecond, that an id of `uuid7` begins with; None for any other text."""
    try:
        return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def own_context(task_id: str) -> str:
    """The context of a task whose caller named none: nothing was said in it before."""
    return f"ctx-{task_id}"
