"""The job that wakes workers, and the life of a worker: Celery's signals start and stop our services.

Celery knows nothing of runs. A message only wakes a worker; leases and the drain at the end are our own.
"""

import logging
import mmap
import multiprocessing
import os
import signal
import sys
import threading
from typing import Any

from billiard import active_children
from billiard import pool as billiard_pool
from celery import bootsteps, concurrency, current_app, shared_task, signals
from celery.concurrency.prefork import TaskPool as Prefork
from celery.concurrency.solo import TaskPool as Solo
from celery.concurrency.thread import TaskPool as Threads
from django.conf import settings
from django.core import checks
from kombu import Queue

from a2a.agents import registry
from tasks_app.counters import broker_messages
from tasks_app.database.errors import AWAY, log_error
from tasks_app.hints import ANY, hints
from tasks_app.hints.dispatch import WAKE, queues_of_agents
from tasks_app.process import services
from tasks_app.runner.fork_server import leave
from tasks_app.runner.runner import runner

log = logging.getLogger(__name__)
LONGER = 3600.0
"""Seconds beyond the longest timeout of an agent after which Redis delivers a message again."""
POLL_SECONDS = 0.2
"""Seconds between two looks of a working child at whether its worker stops."""
UNREAD_LOOKS = 10
"""Looks, one each 0.1 s, of an ending child at whether its worker has read the results of its jobs, which say nothing.

After the loss of the broker Celery forgets jobs that were under way, and so never reads some results. billiard looks
300 times, which would delay the end by 30 s, and the grace of a run as well.
"""


MAIN_PROCESS = multiprocessing.current_process()
"""Python's record of the process that imports this module: that of the worker."""


class Life:
    """State that a worker shares with its forked children."""

    forked = False
    """Whether this process is a child."""
    is_choosy = False
    """Whether the worker was started with --queues or --exclude-queues."""
    going_down = mmap.mmap(-1, 1)
    """A byte of shared memory that is not 0 when the worker stops. An Event would not do: a child that is killed could
    leave its lock taken for ever."""


@shared_task(name=WAKE, ignore_result=True)
def wake() -> None:
    """Claim runnable tasks until there are none or the slots are full. One message does not mean one task.

    In a forked child the job lasts until the run ends, so that Celery gives the next message to another child.
    """
    try:
        runner.claim_all()
    except AWAY as error:  # Celery would log it with its traceback, at every offer of an outage.
        log_error(log, error, "looking for work failed; the next sweep offers again")
        return
    if not Life.forked:
        return
    if runner.hungry:
        hints.offer()
    while not runner.quiet.wait(POLL_SECONDS):
        if Life.going_down[0]:
            return


@signals.setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep the log as settings configured it: Celery leaves it alone when this signal has a receiver."""


@signals.task_received.connect
def count_message(**_: Any) -> None:
    """Count a message from the broker."""
    broker_messages.add(("celery", "received"))


@signals.celeryd_init.connect
def prepare(conf: Any = None, options: Any = None, **_: Any) -> None:
    """Check the settings, and configure what depends on the agents: the queues and the visibility timeout."""
    Life.is_choosy = any((options or {}).get(name) for name in ("queues", "exclude_queues"))
    errors = [str(error) for error in checks.run_checks() if error.is_serious()]
    if not settings.CELERY_BROKER_URL:
        errors.append("CELERY_BROKER_URL is not set: a worker needs the broker that the web processes publish to.")
    if errors:
        # Celery logs any other exception of a receiver and goes on.
        sys.exit("\n".join(errors))
    conf.task_queues = [Queue(name) for name in sorted(queues_of_agents())]
    longest = max((agent.timeout for agent in registry), default=0.0)
    conf.broker_transport_options = {**conf.broker_transport_options, "visibility_timeout": longest + LONGER}


class Services(bootsteps.StartStopStep):
    """The step of a worker's start that starts our services.

    Celery runs it after it has installed its handlers of process signals, so that a SIGTERM never ends a run without
    its drain, and before it connects to the broker, so that a worker runs agents while the broker does not answer.
    """

    def start(self, parent: Any) -> None:
        _start("worker")


@signals.worker_init.connect
def prepare_worker(sender: Any = None, **_: Any) -> None:
    """Check the pool and, unless it forks, add the step that starts the services."""
    pool = concurrency.get_implementation(sender.pool_cls)
    if not issubclass(pool, Prefork | Solo | Threads):
        sys.exit(f"The pool {sender.pool_cls} cannot run agents: use threads, or prefork for agents that need a core.")
    Life.going_down[0] = 0
    if not issubclass(pool, Prefork):
        sender.app.steps["worker"].add(Services)


@signals.worker_ready.connect
def report_ready(**_: Any) -> None:
    """Log that the worker has its broker and its services."""
    log.info("the worker is ready")


@signals.worker_process_init.connect
def start_child(**_: Any) -> None:
    Life.forked, runner.alone = True, True
    _allow_processes()
    billiard_pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = UNREAD_LOOKS
    runner.quiet.set()
    _start("child")


def _allow_processes() -> None:
    """Let a forked child of the worker start processes for agents.

    Celery's billiard has replaced Python's record of the child by its own: that of a daemon, which may not start
    processes, with a key that Python cannot pass on. The record of the worker takes its place.
    """
    python: Any = multiprocessing.process
    python._current_process = MAIN_PROCESS


def _start(role: services.Role) -> None:
    # A worker of all queues serves those of agents to come, too.
    runner.queues = frozenset(current_app.amqp.queues.consume_from) if Life.is_choosy else ANY
    services.start(role)


@signals.worker_shutting_down.connect
def close(**_: Any) -> None:
    """Claim no more tasks. A second signal kills the children and ends the worker at once.

    This runs in a signal handler.
    """
    if runner.stopping:
        for child in active_children():
            if child.pid:
                os.kill(child.pid, signal.SIGKILL)
        leave(1)
    Life.going_down[0] = 1
    runner.close()


@signals.worker_process_shutdown.connect
def stop_child(**_: Any) -> None:
    services.stop()


@signals.worker_shutdown.connect
def stop_worker(sender: Any = None, **_: Any) -> None:
    """Stop the services, and end the process even if agents still run.

    The thread of a sync agent cannot be stopped, and a normal exit would wait for it. All data is written by now.
    """
    services.stop()
    if runner.exit_code or any(thread.name.startswith("agent") for thread in threading.enumerate()):
        log.warning("agents do not end: leaving without them")
        logging.shutdown()
        leave(sender.exitcode or runner.exit_code)
