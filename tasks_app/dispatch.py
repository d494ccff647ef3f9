"""Offering runnable tasks to whoever runs agents: a port, and its adapter for one process.

The rows are the queue. An offer only says "look": a lost or doubled one costs latency and nothing else.
"""

import logging
import threading
from typing import Protocol

from celery import current_app

from tasks_app.hints import hints

log = logging.getLogger(__name__)
WAKE = "tasks_app.wake"
"""The Celery task that claims and drains, started by name: what it runs is above this layer."""


class Dispatcher(Protocol):
    """Passes offers on. Must return at once and never fail: it is called on the thread that committed."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class LocalDispatcher:
    """Runs the Celery task in a thread of this process, through .apply(): no broker is dialled."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.stopping = False
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping = False
        self.thread = threading.Thread(target=self._run, name="dispatch", daemon=True)
        self.thread.start()
        hints.on_offer(self.wanted.set)
        self.wanted.set()

    def _run(self) -> None:
        wake = current_app.tasks[WAKE]
        while not self.stopping:
            self.wanted.wait()
            self.wanted.clear()
            if not self.stopping and (result := wake.apply()).failed():
                log.error("the offer was not taken up; the sweeper offers again: %s", result.traceback)

    def stop(self) -> None:
        """Takes up no more offers."""
        hints.forget_offer(self.wanted.set)
        self.stopping = True
        self.wanted.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None
