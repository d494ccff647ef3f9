"""The routine that deletes rows past their retention time. Every process has one; one of them works at a time."""

import logging
import time
from datetime import datetime

from django.conf import settings

from tasks_app import clock
from tasks_app.database.errors import log_failure
from tasks_app.database.locks import LockRefused
from tasks_app.database.sql import on_postgres
from tasks_app.upkeep.deletion import Deletion, release_lock, run_on_lane, take_lock
from tasks_app.upkeep.processes import clock_doubts, process_row, trouble_sources
from tasks_app.upkeep.routine import PATIENCE, Routine
from tasks_app.upkeep.row_kinds import ROW_KINDS, RowKind

log = logging.getLogger(__name__)
SHARE, MAX_SHARE = 0.25, 0.5
"""The part of the time that deleting may take, and the part that it may take at most, when it is behind."""
LAG_LIMIT = 60.0
"""Seconds by which deleting may be behind before it takes MAX_SHARE of the time and reports trouble."""
PASS_SECONDS = 600.0
"""Seconds after which a pass starts again at the oldest row, in any case."""
LOOK_SECONDS = 30.0
"""Seconds between two looks for rows that a pass has stepped over, and between two starts of a pass because of them.
Both read the index from its beginning, with the entries of deleted rows that no vacuum has removed."""


class Retention(Routine):
    """The thread that deletes rows past their retention time."""

    name = "retention"
    title = "deleting"

    def __init__(self) -> None:
        super().__init__()
        self.passes = [Pass(kind) for kind in ROW_KINDS.values()]

    def run_round(self) -> None:
        """Delete all rows past their time, unless the clock is in doubt or another process is deleting.

        The kinds take turns, a step each. A kind whose step fails waits for the next call; the others go on.
        """
        # The lock is asked for first: while the database is away, that fails once, and not once for each kind.
        if on_postgres() and not run_on_lane(take_lock):
            self._leave_to_other()
            return
        busy = list(self.passes)
        for kind_pass in busy:
            kind_pass.begin()
        try:
            while busy and not self.stopping.is_set() and not clock_doubts():
                for kind_pass in list(busy):
                    if self.stopping.is_set():
                        return
                    if (pause := kind_pass.advance()) is None:
                        self._leave_to_other()
                        return
                    if not kind_pass.more:
                        busy.remove(kind_pass)
                    self.stopping.wait(pause)
                process_row.lag = round(max(kind_pass.lag for kind_pass in self.passes), 1)
        finally:
            if on_postgres():
                run_on_lane(release_lock)

    def _leave_to_other(self) -> None:
        """Report no lag: the process that deletes looks for late rows meanwhile."""
        process_row.lag = None
        for kind_pass in self.passes:
            kind_pass.clear_at = time.monotonic()


class Pass:
    """The progress of this process through the rows of one kind."""

    def __init__(self, kind: RowKind) -> None:
        self.kind = kind
        self.deletion = Deletion(kind)
        self.began = 0.0
        self.more = False
        """Whether there may be more rows to delete."""
        self.lag = 0.0
        """Seconds by which deleting rows of this kind is behind."""
        self.failures = 0
        """The steps in a row that have failed."""
        self.looked = 0.0
        """The last look for rows that were stepped over, on the monotonic clock."""
        self.clear_at = time.monotonic()
        """The last look that found none."""
        self.steps_over = False
        """Whether the last look found one."""

    def begin(self) -> None:
        """Go on where the last round ended, or start at the oldest row for rows that were stepped over."""
        if time.monotonic() - self.began > (LOOK_SECONDS if self.steps_over else PASS_SECONDS):
            self.deletion.place, self.began = "", time.monotonic()
        self.more = True

    def advance(self) -> float | None:
        """Delete one step of rows; return the pause after it, or None if another process is deleting.

        A step that fails ends the pass until the next round.
        """
        try:
            before = clock.now() - self.kind.age()
            step = self.deletion.delete_next(before)
            if step is not None and not step.portion.more:
                self._look(before)
        except LockRefused:
            log.info("%s past their time are locked; deleting them later", self.kind.name)
            return self._end()
        except Exception:  # noqa: BLE001  # it is logged, and the work repeated
            log_failure(log, "deleting %s failed; trying again in %g s", self.kind.name, settings.A2A_SWEEP_SECONDS)
            self.failures += 1
            return self._end()
        self.failures = 0
        if step is None:
            return None
        self.more = step.portion.more
        if self.more:
            position = self.kind.time_of(self.deletion.place) if self.deletion.place else before
            self.lag = max(0.0, (before - position).total_seconds())
        else:
            self.lag = time.monotonic() - self.clear_at if self.steps_over else 0.0
        share = SHARE + (MAX_SHARE - SHARE) * min(1.0, self.lag / LAG_LIMIT)
        return step.seconds * (1 / share - 1)

    def _look(self, before: datetime) -> None:
        """Find whether rows past their time were stepped over: they were locked, or ended behind the place of the pass.

        They are late since the last look without any, at most.
        """
        now = time.monotonic()
        if self.looked < self.began or now - self.looked > LOOK_SECONDS:
            self.steps_over, self.looked = run_on_lane(self.kind.old(before).exists), now
            if not self.steps_over:
                self.clear_at = now

    def _end(self) -> float:
        self.more = False
        return 0.0


retention_routine = Retention()
"""The routine of this process."""


def troubles() -> list[str]:
    """Return sentences about kinds of rows that cannot be deleted, and one when deleting is behind."""
    failing = [kind_pass.kind.name for kind_pass in retention_routine.passes if kind_pass.failures >= PATIENCE]
    failed = [f"retention: deleting {name} fails, see the log" for name in failing]
    if process_row.lag is None or process_row.lag <= LAG_LIMIT:
        return failed
    reason = "rows are made faster than they are deleted; shorten the retention, or make the database faster"
    if names := [each.kind.name for each in retention_routine.passes if each.steps_over and each.lag > LAG_LIMIT]:
        reason = f"other transactions have locked {', '.join(names)}; end these transactions"
    return [*failed, f"retention: rows are deleted {process_row.lag:.0f} s after their time: {reason}"]


trouble_sources.append(troubles)
