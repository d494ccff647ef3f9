"""Ids: time-ordered UUIDs (version 7, RFC 9562), as text."""

import os
import time
from datetime import datetime


def uuid7() -> str:
    """Ordered by the millisecond, random below it; a help for indexes, never a secret."""
    milliseconds = time.time_ns() // 1_000_000
    random = os.urandom(10).hex()
    # Version 7 in the 13th digit, variant 10 in the 17th.
    variant = "89ab"[int(random[3], 16) & 3]
    head = f"{milliseconds:012x}"
    return f"{head[:8]}-{head[8:]}-7{random[:3]}-{variant}{random[4:7]}-{random[7:19]}"


def uuid7_at(time_: datetime) -> str:
    """The lowest id of that millisecond: ids below it are older."""
    head = f"{int(time_.timestamp() * 1000):012x}"
    return f"{head[:8]}-{head[8:]}-7000-8000-000000000000"


def own_context(task_id: str) -> str:
    """The context of a task whose caller named none: nothing was said in it before."""
    return f"ctx-{task_id}"
