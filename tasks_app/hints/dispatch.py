"""Dispatchers, which pass "look for work" on to the runner of this process or to Celery workers.

The rows are the queue. An offer is a hint: a lost or doubled one costs latency and nothing else. It comes on the
thread that committed, so a dispatcher must take it at once and never fail.
"""

import logging
import threading
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.utils.module_loading import autodiscover_modules, import_string

from a2a.agents import registry
from tasks_app.counters import broker_messages
from tasks_app.hints import hints
from tasks_app.hints.broker import time_limits

if TYPE_CHECKING:  # commands that only look start in half the time without it
    from celery import Celery
    from kombu import Connection, Producer

log = logging.getLogger(__name__)
WAKE = "tasks_app.wake"
"""The job that claims runnable tasks. It is started by name, because its code is in a layer above this one."""
PAUSE = 0.01
"""Seconds between two messages. Offers within that time become one message."""
ENOUGH = 32
"""Messages in a queue that wake all of its workers, so that more are not needed. The length is asked for once in as
many messages."""
PATIENCE = 2.0
"""Seconds that the broker may take to answer, and the pause after it did not."""


class LocalDispatcher:
    """Runs the job in a thread of this process through .apply(), without a broker."""

    def __init__(self) -> None:
        self.signal = threading.Event()
        self.stopping = False
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping = False
        celery_app()
        self.thread = threading.Thread(target=self._run, name="dispatch", daemon=True)
        self.thread.start()
        hints.on_offer(self._on_offer)
        self.signal.set()

    def _on_offer(self, queues: frozenset[str]) -> None:
        self.signal.set()

    def _run(self) -> None:
        wake = celery_app().tasks[WAKE]
        while not self.stopping:
            self.signal.wait()
            self.signal.clear()
            if not self.stopping and (result := wake.apply()).failed():
                log.error("looking for work failed; the next sweep offers again: %s", result.traceback)

    def stop(self) -> None:
        """Accept no more offers."""
        hints.forget_offer(self._on_offer)
        self.stopping = True
        self.signal.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None


class CeleryDispatcher:
    """Wakes workers through the broker, from a thread of its own, so that no commit waits for the broker."""

    def __init__(self) -> None:
        self.signal = threading.Event()
        self.lock = threading.Lock()
        self.queues: set[str] = set()
        self.stopping = threading.Event()
        self.trouble = ""
        """Why workers cannot be woken at the moment; empty if they can."""
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        celery_app()
        self.thread = threading.Thread(target=self._run, name="dispatch-celery", daemon=True)
        self.thread.start()
        hints.on_offer(self._on_offer)

    def _on_offer(self, queues: frozenset[str]) -> None:
        with self.lock:
            self.queues |= queues or queues_of_agents()
        self.signal.set()

    def stop(self) -> None:
        """Pass on the last offers, if the broker answers, and end."""
        hints.forget_offer(self._on_offer)
        self.stopping.set()
        self.signal.set()
        if self.thread is not None:
            self.thread.join(2 * PATIENCE)
            self.thread = None

    def _run(self) -> None:
        app = celery_app()
        while not self.stopping.is_set():
            try:
                with connection_of(app) as connection:
                    self._publish_all(app, connection)
            except Exception as error:  # noqa: BLE001  # whatever it is, also of the connection's end, the offers stay
                broker_messages.add(("celery", "failed"))
                self._report_failure(error)
                self.stopping.wait(PATIENCE)

    def _publish_all(self, app: "Celery", connection: "Connection") -> None:
        """Publish offers until stop() is called. Raises if the broker cannot be reached."""
        producer = app.amqp.Producer(connection)
        counts = Counter[str]()
        while True:
            if not self.stopping.is_set():
                self.signal.wait()
            self.signal.clear()
            with self.lock:
                queues, self.queues = self.queues, set()
            try:
                for queue in queues:
                    if counts[queue] % ENOUGH == 0 and waiting(app, producer, queue) >= ENOUGH:
                        continue
                    publish(app, producer, queue)
                    counts[queue] += 1
            except Exception:
                # They are published again, also if nothing else is offered, so that the trouble ends with its cause.
                with self.lock:
                    self.queues |= queues
                self.signal.set()
                raise
            if queues and self.trouble:
                log.warning("the broker answers again: workers are woken")
                self.trouble = ""
            if self.stopping.wait(PAUSE) and not self.queues:
                return

    def _report_failure(self, error: Exception) -> None:
        if not self.trouble:
            log.warning("the broker does not answer; workers find tasks in their own sweeps: %s", error)
        self.trouble = "broker: it does not answer, tasks start late"


@cache
def celery_app() -> "Celery":
    """Return the Celery application, which knows the jobs of every installed app."""
    app: Celery = import_string(settings.CELERY_APPLICATION)
    autodiscover_modules("jobs")
    return app


def connection_of(app: "Celery") -> "Connection":
    """Return a connection to the broker with time limits."""
    retries = {"max_retries": 0, "connect_retries_timeout": PATIENCE}
    options = retries | time_limits(PATIENCE)
    return app.connection_for_write(connect_timeout=PATIENCE, transport_options=options)


def publish(app: "Celery", producer: "Producer", queue: str) -> None:
    """Send a wake message to a declared queue.

    Not by send_task(): its routes, signals and options would add half a millisecond to each task that waits alone.
    """
    message = app.amqp.create_task_message(str(uuid4()), WAKE, (), {}, ignore_result=True)
    producer.publish(
        message.body, exchange="", routing_key=queue, headers=message.headers, serializer="json", **message.properties
    )
    broker_messages.add(("celery", "published"))


def waiting(app: "Celery", producer: "Producer", queue: str) -> int:
    """Declare a queue, and return the number of messages that wait in it."""
    declared: Any = app.amqp.queues[queue].bind(producer.channel).queue_declare()  # type: ignore[arg-type]  # it has one
    return int(declared.message_count)


def queues_of_agents() -> frozenset[str]:
    """Return every queue in which a task can wait."""
    return frozenset(agent.queue for agent in registry)
