"""Ids: time-ordered UUIDs (version 7, RFC 9562), as text."""

import os
from collections import deque
from datetime import UTC, datetime

from tasks_app.clock import milliseconds

_DIGITS = 20
"""Random hexadecimal digits in an id."""
_BLOCK = 256
"""Ids for which randomness is taken from the system at once: the system call costs more than all else here."""
_random: deque[str] = deque()
os.register_at_fork(after_in_child=_random.clear)


def uuid7() -> str:
    """Return a new id. Ids are ordered by the millisecond and random within it; they are not secrets."""
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
    """Return the lowest id of a millisecond. All ids below it are older."""
    head = f"{max(0, int(time_.timestamp() * 1000)):012x}"
    return f"{head[:8]}-{head[8:]}-7000-8000-000000000000"


def time_of(id: str) -> datetime | None:
    """Return the time, to the millisecond, that an id of `uuid7` begins with; None for any other text."""
    try:
        return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def own_context(task_id: str) -> str:
    """Return the context id of a task whose caller named none. Such a context has no earlier messages."""
    return f"ctx-{task_id}"
