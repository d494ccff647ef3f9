"""The loop that deletes what is past its time, one in every process; one of them works at a time."""

import logging
import threading
import time

from django.conf import settings

from tasks_app import clock
from tasks_app.database.locks import Held
from tasks_app.database.rows import on_postgres
from tasks_app.upkeep.kinds import HEAPS, Heap
from tasks_app.upkeep.processes import doubts, entry, sources
from tasks_app.upkeep.stepping import Steps, let_go, on_lane

log = logging.getLogger(__name__)
SHARE, MOST_SHARE = 0.25, 0.5
"""The part of the time that deleting may take; when it is behind, more of it, up to the most."""
BEHIND = 60.0
"""Seconds by which deleting may be behind. Then it takes the most of the time that it may, and says so."""
LAST = 600.0
"""Seconds after which a heap is gone through from its beginning again, for rows that were passed over."""


class Keeper:
    """Keeps the heaps low."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.ways = [Way(heap) for heap in HEAPS.values()]

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        self.thread = threading.Thread(target=self._run, name="retention", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(10)
            self.thread = None

    def _run(self) -> None:
        while not self.stopping.wait(settings.A2A_SWEEP_SECONDS):
            try:
                self.round()
            except Exception:
                log.exception("deleting failed; trying again in %g s", settings.A2A_SWEEP_SECONDS)

    def round(self) -> None:
        """Delete until nothing is past its time, unless the clock is in doubt or another process is at it. A heap whose
        step fails is left to the next round; the others go on."""
        busy = list(self.ways)
        for way in busy:
            way.begin()
        try:
            while busy and not self.stopping.is_set() and not doubts():
                for way in list(busy):
                    if (pause := way.go()) is None:
                        entry.lag = None
                        return
                    if not way.more:
                        busy.remove(way)
                    self.stopping.wait(pause)
                entry.lag = round(max(way.lag for way in self.ways), 1)
        finally:
            if on_postgres():
                on_lane(let_go)


class Way:
    """The way of this process through one heap."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.steps = Steps(heap)
        self.began = 0.0
        self.more = False
        self.lag = 0.0
        """Seconds by which deleting is behind here."""

    def begin(self) -> None:
        """Begin a round where the last one ended, or now and then at the beginning of the heap."""
        if time.monotonic() - self.began > LAST:
            self.steps.place, self.began = "", time.monotonic()
        self.more = True

    def go(self) -> float | None:
        """Make a step; return the pause behind it, None if another process is at it. The way ends with a step that
        fails."""
        before = clock.now() - self.heap.age()
        try:
            stepped = self.steps.step(before)
        except Held:
            log.info("%s past their time are locked; deleting them later", self.heap.name)
            return self._end()
        except Exception:
            log.exception("deleting %s failed; trying again in %g s", self.heap.name, settings.A2A_SWEEP_SECONDS)
            return self._end()
        if stepped is None:
            return None
        self.more = stepped.batch.more
        reached = self.heap.time_of(self.steps.place) if self.more and self.steps.place else before
        self.lag = max(0.0, (before - reached).total_seconds())
        share = SHARE + (MOST_SHARE - SHARE) * min(1.0, self.lag / BEHIND)
        return stepped.seconds * (1 / share - 1)

    def _end(self) -> float:
        self.more = False
        return 0.0


keeper = Keeper()
"""The keeper of this process."""


def troubles() -> list[str]:
    """Return a sentence when deleting is behind."""
    if entry.lag is None or entry.lag <= BEHIND:
        return []
    why = "more are made than deleted; keep them for a shorter time, or make the database faster"
    return [f"retention: rows are deleted {entry.lag:.0f} s after their time, for {why}"]


sources.append(troubles)
