"""The count of unfinished tasks, for the limits of owners and agents.

Counting is too slow for a call. A thread does it about once a second, while tasks are made or a limit is reached.
"""

import logging
import threading
from datetime import datetime

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_failure
from tasks_app.database.work import DoApart
from tasks_app.event_log import count_unfinished
from tasks_app.limits.accounts import account

log = logging.getLogger(__name__)
EVERY = 1.0
"""Seconds between two counts."""


class Census:
    """The thread that counts unfinished tasks, one in every process with doors."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.last: datetime | None = None
        """The beginning of the last count."""

    def start(self) -> None:
        """Count once, then again whenever tasks were made or a limit is reached."""
        if self.thread is not None:
            return
        self.stopping.clear()
        account.count_due.set()
        self.thread = threading.Thread(target=self._run, name="census", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        account.count_due.set()
        if self.thread is not None:
            self.thread.join(10)
            self.thread = None

    def _run(self) -> None:
        while not self.stopping.is_set():
            account.count_due.wait()
            if self.stopping.is_set():
                return
            try:
                self.count()
            except Exception:  # noqa: BLE001  # it is logged, and the work repeated
                log_failure(log, "unfinished tasks could not be counted; trying again in %g s", EVERY)
            self.stopping.wait(EVERY)

    def count(self) -> None:
        """Count now."""
        baseline, now = account.begin_count(), clock.now()
        before, self.last = self.last or now, now
        account.end_count(baseline, bridge.do(DoApart(lambda: count_unfinished(now, before))))


census = Census()
"""The census of this process."""
