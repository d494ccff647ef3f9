"""The sweep, every few seconds in every process: reclaim tasks of dead workers (leases.py), end tasks that waited too
long (expiry.py), close idle shared streams (idle_streams.py), give back reservations of calls that died (orphans.py),
begin pauses again after the clock was set back (pauses.py), offer runnable tasks, delete unused files and expired
tokens (expired_tokens.py)."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from django.conf import settings

from tasks_app import clock, files
from tasks_app.database.locks import LockRefused
from tasks_app.exchanges.recording import recorder
from tasks_app.hints import hints
from tasks_app.limits.rate_limits import limits
from tasks_app.upkeep.expired_tokens import expired_tokens
from tasks_app.upkeep.expiry import expire
from tasks_app.upkeep.idle_streams import close_idle_streams
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.orphans import release_orphans
from tasks_app.upkeep.pauses import restart_pauses
from tasks_app.upkeep.processes import clock_doubts, process_row
from tasks_app.upkeep.routine import Routine

log = logging.getLogger(__name__)
DELETING_SECONDS = 5.0
"""Seconds that the end of the process waits for the thread that deletes files."""


class Sweeper(Routine):
    """The thread that sweeps, one in every process.

    Sweeps of several processes do no harm to each other: each append is conditional on the state that it read.
    """

    name = "sweeper"
    title = "the sweep"

    def __init__(self) -> None:
        super().__init__()
        self.last = 0.0
        """The end of the last sweep on the monotonic clock; 0 before the first."""
        self.judges_at: float | None = None
        """When leases are looked at again after a late sweep or a step of the database's clock, on the same clock."""
        self.shift: int | None = None
        """The shift of the database's clock as of the last sweep."""
        self.deleting: threading.Thread | None = None
        """The thread that deletes files, so that a storage that hangs does not hold up the sweep."""
        self.renew: Callable[[], None] = lambda: None
        """Renews the leases of this process; services.py sets it."""

    @property
    def age(self) -> float:
        """Seconds since the last sweep."""
        return time.monotonic() - self.last

    def start(self) -> None:
        if self.thread is None:
            self.last = time.monotonic()
        super().start()

    def stop(self) -> None:
        super().stop()
        if self.deleting is not None:
            self.deleting.join(DELETING_SECONDS)
            self.deleting = None

    def run_round(self) -> None:
        """Sweep once, now."""
        with suppress(LockRefused):  # The next sweep writes the row.
            process_row.write(recorder.losses)
        recorder.offer()
        step = self._find_step()
        if step is None or step < -clock.APART:
            with suppress(LockRefused):
                restart_pauses()
        if self._is_calm(step or 0.0):
            reclaim_tasks(self.renew)
        else:
            self.renew()
        hints.offer()
        limits.load()
        if not clock_doubts():
            expire()
            close_idle_streams()
            release_orphans()
            self.delete_files()
        self.last = time.monotonic()
        if not clock_doubts():
            expired_tokens.advance()

    def _is_calm(self, step: float) -> bool:
        """Return whether expired leases may be reclaimed, after a step of the database's clock.

        After a late sweep they may not: the database was away or this process was asleep, and other processes could
        not renew their leases either. They get a third of a lease to do so. If the database's clock was set forward,
        all leases have expired at once, and each process renews its own in its next sweep.
        """
        now, third = time.monotonic(), settings.A2A_LEASE_SECONDS / 3
        if step > third:
            wait = max(third, 2 * settings.A2A_SWEEP_SECONDS)
            self.judges_at = now + wait
            log.warning("the clock was set by %+.0f s: expired leases wait for %.1f s", step, wait)
        if self.judges_at is None and self.last and now - self.last > settings.A2A_SWEEP_SECONDS + third:
            self.judges_at = now + third
            log.warning("the last sweep was %.0f s ago: expired leases wait for %.1f s", now - self.last, third)
        if self.judges_at is not None and now < self.judges_at:
            return False
        self.judges_at = None
        return True

    def _find_step(self) -> float | None:
        """Return the seconds by which the database's clock was set since the last sweep, as far as this one knows.

        The first sweep does not know it and returns None: the clock may have been set before.
        """
        last, self.shift = self.shift, clock.anchor.shift
        return None if last is None else (self.shift - last) / 1_000_000_000

    def delete_files(self) -> None:
        """Start the thread that deletes unused files, unless the last one is still running."""
        if self.deleting is None or not self.deleting.is_alive():
            self.deleting = threading.Thread(
                target=files.sweep, args=(self.stopping.is_set,), name="sweeper-files", daemon=True
            )
            self.deleting.start()


sweeper = Sweeper()
"""The sweeper of this process."""
