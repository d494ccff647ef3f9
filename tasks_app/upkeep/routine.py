"""A routine: work that a thread of its own does every A2A_SWEEP_SECONDS, from the start of the process to its end."""

import logging
import threading
from abc import ABC, abstractmethod

from django.conf import settings

from tasks_app.database.errors import log_failure
from tasks_app.upkeep.processes import trouble_sources

log = logging.getLogger(__name__)
PATIENCE = 2
"""Rounds in a row that fail before the process reports it: a database that is away for a moment fails one."""

failures: dict[str, int] = {}
"""The rounds in a row that have failed, by the name of the routine."""


def troubles() -> list[str]:
    """Return a sentence for each routine of this process whose rounds fail."""
    return [
        f"{name}: its last {count} rounds have failed, see the log"
        for name, count in failures.copy().items()
        if count >= PATIENCE
    ]


trouble_sources.append(troubles)


class Routine(ABC):
    """The thread of a routine. A round that fails is logged, and the next one comes in its time.

    The process reports a routine whose rounds go on failing among its troubles.
    """

    name: str
    """The name of the thread."""
    title: str
    """The work, as the subject of the log line about a round that failed."""
    at_once = False
    """True to do the first round at the start, and not after the first pause."""
    stop_seconds = 10.0
    """Seconds that the end of the process waits for the round under way."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    @abstractmethod
    def run_round(self) -> None:
        """Do the work once, now."""

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(self.stop_seconds)
            self.thread = None

    def _run(self) -> None:
        pause = 0.0 if self.at_once else settings.A2A_SWEEP_SECONDS
        while not self.stopping.wait(pause):
            pause = settings.A2A_SWEEP_SECONDS
            self.try_round()

    def try_round(self) -> None:
        """Do the work once. Any error is logged and counted: SystemExit, too, would end the thread for good."""
        try:
            self.run_round()
            failures.pop(self.name, None)
        except BaseException:  # noqa: BLE001  # it is logged, and the work repeated
            failures[self.name] = failures.get(self.name, 0) + 1
            log_failure(log, "%s failed; trying again in %g s", self.title, settings.A2A_SWEEP_SECONDS)
