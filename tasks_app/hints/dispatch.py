"""Offering runnable tasks to runners: a port, and its adapters for one process and for Celery workers.

The rows are the queue. An offer only says "look": a lost or doubled one costs latency and nothing else.
"""

import logging
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from django.conf import settings
from django.utils.module_loading import autodiscover_modules, import_string

from a2a.agents import registry
from tasks_app.hints import hints

if TYPE_CHECKING:  # commands that only look start in half the time without it
    from celery import Celery
    from kombu import Connection, Producer

log = logging.getLogger(__name__)
WAKE = "tasks_app.wake"
"""The Celery task that claims what is runnable, started by name: what it runs is above this layer."""
PAUSE = 0.01
"""Seconds after a message before the next: offers of that time are one."""
ENOUGH = 32
"""A queue in which so many messages wait needs no more: every worker of it will look. Asked after as many."""
PATIENCE = 2.0
"""Seconds for the broker to answer, and between attempts when it does not."""


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
        celery_app()
        self.thread = threading.Thread(target=self._run, name="dispatch", daemon=True)
        self.thread.start()
        hints.on_offer(self._offered)
        self.wanted.set()

    def _offered(self, queues: frozenset[str]) -> None:
        self.wanted.set()

    def _run(self) -> None:
        wake = celery_app().tasks[WAKE]
        while not self.stopping:
            self.wanted.wait()
            self.wanted.clear()
            if not self.stopping and (result := wake.apply()).failed():
                log.error("the offer was not taken up; the sweeper offers again: %s", result.traceback)

    def stop(self) -> None:
        """Takes up no more offers."""
        hints.forget_offer(self._offered)
        self.stopping = True
        self.wanted.set()
        if self.thread is not None:
            self.thread.join(5)
            self.thread = None


class CeleryDispatcher:
    """Wakes workers through the broker, from a thread of its own: no commit waits for the broker."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.lock = threading.Lock()
        self.queues: set[str] = set()
        self.stopping = threading.Event()
        self.trouble = ""
        """Why workers are not woken, while they are not."""
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        celery_app()
        self.thread = threading.Thread(target=self._run, name="dispatch-celery", daemon=True)
        self.thread.start()
        hints.on_offer(self._offered)

    def _offered(self, queues: frozenset[str]) -> None:
        with self.lock:
            self.queues |= queues or queues_of_agents()
        self.wanted.set()

    def stop(self) -> None:
        """Passes on what was offered, if the broker lets it, and ends."""
        hints.forget_offer(self._offered)
        self.stopping.set()
        self.wanted.set()
        if self.thread is not None:
            self.thread.join(2 * PATIENCE)
            self.thread = None

    def _run(self) -> None:
        app = celery_app()
        while not self.stopping.is_set():
            with connection_of(app) as connection:
                try:
                    self._publish_all(app, connection)
                except Exception as error:  # noqa: BLE001  # whatever it is, the sweeper offers again
                    self._failed(error)
                    self.stopping.wait(PATIENCE)

    def _publish_all(self, app: "Celery", connection: "Connection") -> None:
        """Until it is time to stop. Raises when the broker cannot be reached."""
        producer = app.amqp.Producer(connection)
        sent = dict.fromkeys(queues_of_agents(), 0)
        while True:
            if not self.stopping.is_set():
                self.wanted.wait()
            self.wanted.clear()
            with self.lock:
                queues, self.queues = self.queues, set()
            for queue in queues:
                if sent[queue] % ENOUGH == 0 and waiting(app, producer, queue) >= ENOUGH:
                    continue
                publish(app, producer, queue)
                sent[queue] += 1
            if queues and self.trouble:
                log.warning("the broker answers again: workers are woken")
                self.trouble = ""
            if self.stopping.wait(PAUSE) and not self.queues:
                return

    def _failed(self, error: Exception) -> None:
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
    """To the broker, with an end to its patience: by itself kombu waits for ever."""
    return app.connection_for_write(
        connect_timeout=PATIENCE,
        transport_options={
            "max_retries": 0, "connect_retries_timeout": PATIENCE,
            "socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE,  # Redis
            "read_timeout": PATIENCE, "write_timeout": PATIENCE,  # AMQP
        },
    )  # fmt: skip


def publish(app: "Celery", producer: "Producer", queue: str) -> None:
    """A message to a queue that is declared. What send_task does besides (routes, signals, options) takes half a
    millisecond of every task that waits alone."""
    message = app.amqp.create_task_message(str(uuid4()), WAKE, (), {}, ignore_result=True)
    producer.publish(
        message.body, exchange="", routing_key=queue, headers=message.headers, serializer="json", **message.properties
    )


def waiting(app: "Celery", producer: "Producer", queue: str) -> int:
    """How many messages wait in a queue, which is declared by that."""
    declared: Any = app.amqp.queues[queue].bind(producer.channel).queue_declare()  # type: ignore[arg-type]  # it has one
    return int(declared.message_count)


def queues_of_agents() -> frozenset[str]:
    """Every queue in which a task can wait."""
    return frozenset(agent.queue for agent in registry)
