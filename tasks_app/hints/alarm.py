"""Offers at a later time, so that a task that pauses between two attempts runs when its pause is over."""

import threading
import time
from collections.abc import Callable
from heapq import heappop, heappush

MOST = 10_000
"""Times that may be set at once."""


class Alarm:
    """Calls a function at each time that is set. Its thread starts with the first and lives as long as the process."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        self.changed = threading.Condition()
        self.due: list[float] = []
        """The times, on the monotonic clock, as a heap."""
        self.thread: threading.Thread | None = None

    def set(self, seconds: float) -> None:
        """Call the function after that many seconds."""
        with self.changed:
            if len(self.due) >= MOST:
                return  # The next sweep offers the task, a little later.
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
        """Wait for the next time. Times that have passed together cause one call."""
        with self.changed:
            while not self.due or self.due[0] > time.monotonic():
                self.changed.wait(self.due[0] - time.monotonic() if self.due else None)
            while self.due and self.due[0] <= time.monotonic():
                heappop(self.due)
