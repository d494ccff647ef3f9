"""The heartbeat of a process: it renews the leases of its runs from a thread of its own, so that no agent can keep it
from beating. A frozen or dead process beats no more, and its tasks are taken up elsewhere."""

import logging
import threading
from datetime import timedelta

from django.conf import settings

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.event_log import Renew
from tasks_app.runner.execution import Execution

log = logging.getLogger(__name__)
AGAIN = 10.0
"""A beat that failed is repeated after this fraction of a lease."""


class Heartbeat:
    """The thread, and beats out of turn from others."""

    def __init__(self, worker: str, runs: dict[str, Execution]) -> None:
        self.worker = worker
        self.runs = runs
        """The runner's own table, by task id."""
        self.renewed = clock.now()
        """When the last beat began."""
        self.beating = threading.Lock()
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        self.renewed = clock.now()
        self.stopping.clear()
        self.thread = threading.Thread(target=self._live, name="heartbeat", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()

    def _live(self) -> None:
        wait = settings.A2A_LEASE_SECONDS / 3
        while not self.stopping.wait(wait):
            wait = settings.A2A_LEASE_SECONDS / (3 if self.beat() else AGAIN)

    def beat(self) -> bool:
        """Renew all leases with one statement, and stop the runs that lost theirs; False if that failed."""
        with self.beating:
            now = clock.now()
            runs = self.runs.copy()  # in one step: claims are made on another thread
            try:
                kept = self._kept(runs)
            except Exception:
                log.exception("%d leases could not be renewed; trying again", len(runs))
                return False
            self.renewed = now
        for task_id, run in runs.items():
            if self.runs.get(task_id) is not run:
                continue
            if task_id in kept:
                # Messages that came about in another process, or whose hint was lost.
                run.look()
            else:
                run.lose()
        return True

    def beat_if_late(self) -> None:
        """Beat out of turn when one is late, as after the machine has slept or its clock was set."""
        late = clock.now() - self.renewed > timedelta(seconds=settings.A2A_LEASE_SECONDS / 2)
        if late and self.runs:
            self.beat()

    def _kept(self, runs: dict[str, Execution]) -> set[str]:
        if not runs:
            return set()
        fences = tuple((task_id, run.read.fence) for task_id, run in runs.items())
        return bridge.do(Renew(worker=self.worker, pairs=fences))

    async def check(self, run: Execution) -> None:
        """Stop the run if its task is not its own any more: a hint says so, and only the row knows."""
        try:
            kept = await bridge.ask(Renew(worker=self.worker, pairs=((run.task_id, run.read.fence),)))
        except Exception:
            log.exception("task %s: whether it has ended is not known; the heartbeat asks again", run.task_id)
            return
        if run.task_id not in kept:
            run.lose()
