"""The heartbeat of a process. It renews the leases of the process's runs from a thread of its own, so that no agent can
delay it. A frozen or dead process renews no lease, and other processes claim its tasks."""

import logging
import threading
from datetime import timedelta

from django.conf import settings

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_failure
from tasks_app.event_log import Renew
from tasks_app.runner.execution import Execution

log = logging.getLogger(__name__)
AGAIN = 10.0
"""The fraction of a lease (one in AGAIN) after which a failed beat is repeated."""


class Heartbeat:
    """The thread of the heartbeat. Other threads may have it beat out of turn."""

    def __init__(self, worker: str, runs: dict[str, Execution]) -> None:
        self.worker = worker
        self.runs = runs
        """The runner's table of runs, by task id."""
        self.last_beat = clock.now()
        """The time when the last beat began."""
        self.beating = threading.Lock()
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        self.last_beat = clock.now()
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
        """Renew all leases with one statement, and stop the runs that lost theirs. Return False if that failed."""
        with self.beating:
            now = clock.now()
            runs = self.runs.copy()  # in one step, because another thread claims tasks
            try:
                own = self._renew(runs)
            except Exception:  # noqa: BLE001  # it is logged, and the work repeated
                log_failure(log, "%d leases could not be renewed; trying again", len(runs))
                return False
            self.last_beat = now
        for task_id, run in runs.items():
            if self.runs.get(task_id) is not run:
                continue
            if task_id in own:
                # Finds messages that another process stored and whose hint was lost.
                run.look()
            else:
                run.lose()
        return True

    def beat_if_late(self) -> None:
        """Beat at once if a beat is late: the machine has slept, or its clock was set."""
        late = clock.now() - self.last_beat > timedelta(seconds=settings.A2A_LEASE_SECONDS / 2)
        if late and self.runs:
            self.beat()

    def _renew(self, runs: dict[str, Execution]) -> set[str]:
        if not runs:
            return set()
        fences = tuple((task_id, run.read.fence) for task_id, run in runs.items())
        return bridge.do(Renew(worker=self.worker, pairs=fences))

    async def check(self, run: Execution) -> None:
        """Stop the run if its task is not its own any more, as a hint says. The task's row decides."""
        try:
            own = await bridge.ask(Renew(worker=self.worker, pairs=((run.task_id, run.read.fence),)))
        except Exception:  # noqa: BLE001  # it is logged, and the work repeated
            log_failure(log, "task %s: its lease could not be checked; the next beat checks it", run.task_id)
            return
        if run.task_id not in own:
            run.lose()
