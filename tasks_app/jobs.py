"""Celery's door: ids in, nothing out. And a worker's life: what Celery's signals start and end.

Celery knows nothing of the runs: a message only wakes, the leases are ours, and so is the drain at the end.
"""

import logging
import mmap
import os
import signal
import sys
import threading
from typing import Any

from billiard import active_children
from celery import concurrency, current_app, shared_task, signals
from celery.concurrency.prefork import TaskPool as Prefork
from celery.concurrency.solo import TaskPool as Solo
from celery.concurrency.thread import TaskPool as Threads
from django.conf import settings
from django.core import checks
from kombu import Queue

from a2a.agents import registry
from tasks_app.hints import hints
from tasks_app.hints.dispatch import WAKE, queues_of_agents
from tasks_app.process import services
from tasks_app.runner.runner import runner

log = logging.getLogger(__name__)
LONGER = 3600.0
"""Seconds beyond the longest timeout after which Redis hands a message out again."""
LOOK = 0.2
"""Seconds after which a child that is at work looks whether its worker goes down."""


class Life:
    """Facts that a parent tells its forked children."""

    forked = False
    """This process is such a child."""
    going_down = mmap.mmap(-1, 1)
    """A byte that is not 0 when the worker goes down; no Event, whose lock a killed child could keep for ever."""


@shared_task(name=WAKE, ignore_result=True)
def wake() -> None:
    """Claims runnable tasks until there are none or the slots are full. One message does not mean one task.

    A forked child is at work until its run ends, so that Celery gives the next message to another one.
    """
    runner.claim_all()
    if not Life.forked:
        return
    if runner.hungry:
        hints.offer()
    while not runner.quiet.wait(LOOK):
        if Life.going_down[0]:
            return


@signals.setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep the log as settings configured it: Celery leaves it alone when this signal has a receiver."""


@signals.celeryd_init.connect
def prepare(conf: Any = None, **_: Any) -> None:
    """Refuses what cannot work, and takes from the agents what Celery must know: their queues, and the longest run."""
    errors = [str(error) for error in checks.run_checks() if error.is_serious()]
    if not settings.CELERY_BROKER_URL:
        errors.append("CELERY_BROKER_URL is not set: a worker needs the broker that the web processes publish to.")
    if errors:
        # Celery only logs what a receiver raises, except for this.
        sys.exit("\n".join(errors))
    conf.task_queues = [Queue(name) for name in sorted(queues_of_agents())]
    longest = max((agent.timeout for agent in registry), default=0.0)
    conf.broker_transport_options = {**conf.broker_transport_options, "visibility_timeout": longest + LONGER}


@signals.worker_init.connect
def begin(sender: Any = None, **_: Any) -> None:
    """Before the pool exists: with threads the work begins here, whether the broker answers or not."""
    pool = concurrency.get_implementation(sender.pool_cls)
    if not issubclass(pool, Prefork | Solo | Threads):
        sys.exit(f"The pool {sender.pool_cls} cannot run agents: use threads, or prefork for what needs a core.")
    Life.going_down[0] = 0
    if not issubclass(pool, Prefork):
        _start("worker")


@signals.worker_ready.connect
def tell(**_: Any) -> None:
    """From now on Celery's own handlers take the signals."""
    log.info("the worker is ready")


@signals.worker_process_init.connect
def begin_child(**_: Any) -> None:
    Life.forked, runner.alone = True, True
    runner.quiet.set()
    _start("child")


def _start(role: services.Role) -> None:
    runner.queues = frozenset(current_app.amqp.queues.consume_from)
    services.start(role)


@signals.worker_shutting_down.connect
def close(**_: Any) -> None:
    """In a signal handler. The second leaves at once, with its children."""
    if runner.stopping:
        for child in active_children():
            if child.pid:
                os.kill(child.pid, signal.SIGKILL)
        os._exit(1)
    Life.going_down[0] = 1
    runner.close()


@signals.worker_process_shutdown.connect
def end_child(**_: Any) -> None:
    services.stop()


@signals.worker_shutdown.connect
def end(sender: Any = None, **_: Any) -> None:
    """A sync agent's thread cannot be stopped, and Python would wait for it: everything is written by now."""
    services.stop()
    if runner.exit_code or any(thread.name.startswith("agent") for thread in threading.enumerate()):
        log.warning("agents do not end: leaving without them")
        logging.shutdown()
        os._exit(sender.exitcode or runner.exit_code)
