"""Numbers about this process for `GET /health`: its uptime, its connections, its memory and its share of a core."""

import resource
import sys
import time
from pathlib import Path

from msgspec import Struct

from tasks_app.process.connections import count_connections
from tasks_app.upkeep.processes import process_row

_STATM = Path("/proc/self/statm")
"""Sizes of the process in pages, on Linux. The second one is that in memory."""
_UNIT = 1 if sys.platform == "darwin" else 1024
"""The bytes in a unit of `ru_maxrss`: macOS counts bytes, others kilobytes (getrusage(2))."""


class Vitals(Struct, frozen=True, kw_only=True):
    """The numbers of one moment."""

    uptime: int
    """Seconds since the start."""
    connections: int
    """Open connections of HTTP and WebSocket; 0 under another server than ours."""
    memory_mb: int
    cpu_percent: float
    """The share of one core since the numbers were last asked for."""


class Pulse:
    """Measures the share of a core between two looks."""

    def __init__(self) -> None:
        self.at, self.worked = time.monotonic(), time.process_time()

    def look(self) -> Vitals:
        """Return the numbers of this moment."""
        now, worked = time.monotonic(), time.process_time()
        share = (worked - self.worked) / max(now - self.at, 0.001)
        self.at, self.worked = now, worked
        return Vitals(
            uptime=int(now - process_row.started),
            connections=count_connections(),
            memory_mb=read_memory() >> 20,
            cpu_percent=round(100 * share, 1),
        )


def read_memory() -> int:
    """Return the bytes of the process in memory. Where the system does not tell them, the most that it ever had."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


pulse = Pulse()
"""The one measurement of this process."""
