"""Offers for later: a task that pauses between two attempts is looked for when its pause is over, not a sweep later."""

import threading
import time
from collections.abc import Callable
from heapq import heappop, heappush

MOST = 10_000
"""Moments that are kept."""


class Alarm:
    """Rings once for each time it is set to. Its thread begins with the first and lives as long as the process."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        self.changed = threading.Condition()
        self.due: list[float] = []
        """A heap of moments on the monotonic clock."""
        self.thread: threading.Thread | None = None

    def set(self, seconds: float) -> None:
        """Rings after that time."""
        with self.changed:
            if len(self.due) >= MOST:
                return  # The sweeper offers too, a little later.
            heappush(self.due, time.monotonic() + seconds)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="alarm", daemon=True)
                self.thread.start()
            self.changed.notify()

    def _run(self) -> None:
        while True:
            self._wait()
            self.ring()

    def _wait(self) -> None:
        """Returns when at least one moment has come; all that have come are one."""
        with self.changed:
            while not self.due or self.due[0] > time.monotonic():
                self.changed.wait(self.due[0] - time.monotonic() if self.due else None)
            while self.due and self.due[0] <= time.monotonic():
                heappop(self.due)
