"""The work that time alone brings about: take up what lost workers held (leases.py), end what waits
for too long (expiry.py), offer, delete files."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from django.conf import settings

from tasks_app import files
from tasks_app.database.locks import Held
from tasks_app.exchanges.recording import recorder
from tasks_app.hints import hints
from tasks_app.upkeep.expiry import expire
from tasks_app.upkeep.leases import take_up
from tasks_app.upkeep.processes import doubts, entry

log = logging.getLogger(__name__)
FAREWELL = 5.0
"""Seconds that the deleting of files may take when the process ends."""


class Sweeper:
    """The loop, one in every process; the conditions of append make many of them harmless."""

    def __init__(self) -> None:
        self.last = 0.0
        """When the last sweep ended, on the monotonic clock; 0 before the first."""
        self.judges_at: float | None = None
        """On the same clock: when leases are judged again after a sweep that was late."""
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.deleting: threading.Thread | None = None
        """The thread that deletes files: a storage that hangs holds up no task."""
        self.renew: Callable[[], None] = lambda: None
        """Lets this process renew the leases that it holds itself; see services.py."""

    @property
    def age(self) -> float:
        """Seconds since the last sweep."""
        return time.monotonic() - self.last

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        self.last = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(10)
            self.thread = None
        if self.deleting is not None:
            self.deleting.join(FAREWELL)
            self.deleting = None

    def _run(self) -> None:
        while not self.stopping.wait(settings.A2A_SWEEP_SECONDS):
            try:
                self.sweep()
            except Exception:
                log.exception("the sweep failed; trying again in %g s", settings.A2A_SWEEP_SECONDS)

    def sweep(self) -> None:
        """Sweep once, now."""
        with suppress(Held):  # The next sweep writes it.
            entry.write(recorder.lost)
        recorder.offer()
        if self._is_calm():
            take_up(self.renew)
        else:
            self.renew()
        hints.offer()
        if not doubts():
            expire()
            self.delete_files()
        self.last = time.monotonic()

    def _is_calm(self) -> bool:
        """Whether leases may be judged. A sweep that comes late is one after the database was away, or this process
        asleep: for a third of a lease every process renews what it holds before any of it is judged."""
        now, third = time.monotonic(), settings.A2A_LEASE_SECONDS / 3
        if self.judges_at is None and self.last and now - self.last > settings.A2A_SWEEP_SECONDS + third:
            self.judges_at = now + third
            log.warning("the last sweep was %.0f s ago: leases are judged in %.1f s", now - self.last, third)
        if self.judges_at is not None and now < self.judges_at:
            return False
        self.judges_at = None
        return True

    def delete_files(self) -> None:
        """Begins to, unless it is still at it from the last time."""
        if self.deleting is None or not self.deleting.is_alive():
            self.deleting = threading.Thread(target=files.sweep, name="sweeper-files", daemon=True)
            self.deleting.start()


sweeper = Sweeper()
"""The sweeper of this process."""
