"""The background services of a process, such as the runner, the dispatcher, the sweeper and the sender.

They are started once, and stopped in order.
"""

import atexit
import gc
import logging
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Literal, Protocol, assert_never

from django.conf import settings

from tasks_app import files, webhooks
from tasks_app.agent_files import folder
from tasks_app.batches import rows as batch_rows
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_failure
from tasks_app.database.work import Do
from tasks_app.event_log import release_all
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.refusals import tally
from tasks_app.hints.dispatch import CeleryDispatcher, LocalDispatcher
from tasks_app.hints.redis_group import broadcast
from tasks_app.limits.rate_limits import limits
from tasks_app.operations.advances import advances
from tasks_app.operations.batch_keeper import keeper
from tasks_app.operations.conductor import conductor
from tasks_app.operations.moderator import moderator
from tasks_app.process.counting import census
from tasks_app.process.memory import return_large_blocks
from tasks_app.runner.doors import doors
from tasks_app.runner.runner import runner
from tasks_app.shared_streams import answers
from tasks_app.slack import questions
from tasks_app.slack.extra import is_on
from tasks_app.slack.responder import responder
from tasks_app.upkeep.agents import agents_routine
from tasks_app.upkeep.counts import count_routine
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.processes import process_row, trouble_sources
from tasks_app.upkeep.quotas import stored_bytes
from tasks_app.upkeep.relays import relay_routine
from tasks_app.upkeep.retention import retention_routine
from tasks_app.upkeep.routine import Routine
from tasks_app.upkeep.sweeps import sweeper
from tasks_app.webhooks import sender
from tasks_app.workflows import leases as workflows

log = logging.getLogger(__name__)
Role = Literal["web", "worker", "child"]
"""A process with doors; a Celery worker; or the forked child of a worker, which runs one task at a time."""

LAST_SECONDS = 20.0
"""Seconds for the last writes of a process. With the grace of its agents and the last rounds of its routines it ends
within the 90 s that systemd waits, whatever its database does."""
COLLECT_AFTER = 5_000
"""New objects, less those freed, after which Python looks for cycles among them.

A few calls reach Python's default of 700. With that, the search ran while calls were under way, took a tenth of the
time of a get, and moved objects still in use to an older generation, whose search comes later and costs more.
"""


class Service(Protocol):
    """Background work that starts and stops with the process."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


local, celery = LocalDispatcher(), CeleryDispatcher()
_running: list[Service] = []
_starting = threading.Lock()


def services_of(role: Role) -> list[Service]:
    """Return the services of a process in the order of their start. They stop in the reverse order."""
    shared: list[Service] = [broadcast] if settings.REDIS_URL else []
    if settings.A2A_RELAYS and role != "child":
        shared.append(relay_routine)
    if settings.A2A_AGENTS_DIR and settings.A2A_AGENTS_RELOAD:
        shared.append(agents_routine)
    match role:
        case "web":
            runs = [celery] if settings.CELERY_BROKER_URL else [runner, local]
            counts = [census, count_routine, stored_bytes]
            work = [*counts, sender, sweeper, retention_routine, doors, moderator, conductor, keeper]
            return [*shared, *runs, *work, *([responder] if is_on() else [])]
        case "worker":
            # With the local dispatcher its own offers reach it even while the broker is away.
            return [*shared, celery, runner, local, sender, sweeper, retention_routine]
        case "child":
            # Its deliveries are sent, and old rows deleted, by the other processes.
            return [*shared, celery, runner, local, sweeper]
        case _:
            assert_never(role)


def start(role: Role = "web") -> None:
    """Start the services of this process, unless they are running. A further call is cheap."""
    if _running:
        return
    with _starting:
        if _running:
            return
        return_large_blocks()
        services = services_of(role)
        sweeper.renew = runner.renew
        process_row.begin(role)
        _announce()
        _load_limits()
        for service in services:
            service.start()
        atexit.register(stop)
        _running.extend(services)
    # Objects loaded by now stay for good. Frozen, they are left out of garbage collections; with them each full
    # collection stopped all threads for 60 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def take_over() -> None:
    """Release all leases and reclaim their tasks. Call it at the start of the only process of a database: a lease can
    then only be that of a process that has ended."""
    if bridge.do(Do(release_all)):
        log.info(
            "interrupted tasks: %d; an agent that has another attempt is called again, and the other tasks fail",
            reclaim_tasks(),
        )
    bridge.do(Do(webhooks.release_all))
    bridge.do(Do(answers.release_all))
    bridge.do(Do(questions.release_all))
    bridge.do(Do(workflows.release_all))
    bridge.do(Do(batch_rows.release_all))


def troubles() -> list[str]:
    """Return sentences about delays that do not keep the process from its work."""
    hints = [trouble for trouble in (celery.trouble, broadcast.trouble, broadcast.deaf, limits.bank.trouble) if trouble]
    return [*hints, *_deaths(), *runner.troubles(), *doors.troubles(), *files.outage.troubles()]


def _deaths() -> list[str]:
    """Return sentences about threads of services and of lanes that have ended by themselves.

    A worker has no port, and so no /readyz. Its row alone can say it.
    """
    threads = [(service, getattr(service, "thread", None)) for service in _running]
    ended = [
        service.title if isinstance(service, Routine) else thread.name
        for service, thread in threads
        if thread is not None and not thread.is_alive()
    ]
    return [*(f"{title}: its thread has ended; restart the process" for title in ended), *bridge.deaths()]


trouble_sources.extend((troubles, recorder.troubles, folder.troubles))


def _announce(*, ended: bool = False) -> None:
    """Write the row of this process. At the start this also sets its clock by the database's, before its first use."""
    try:
        process_row.write(recorder.losses, ended=ended)
    except Exception:  # noqa: BLE001  # it is logged, and the work repeated
        log_failure(log, "the row of this process could not be written; the sweeper tries again")


def _load_limits() -> None:
    """Read the rate limits before the first call."""
    try:
        limits.load()
    except Exception:  # noqa: BLE001  # it is logged, and the work repeated
        log_failure(log, "the rate limits could not be read; the sweeper tries again")


def drain() -> None:
    """Accept no new work, and answer every stream and waiting call now. Call it on the loop of the doors."""
    readers.drain()


def stop() -> None:
    """Stop the services: no more claims, a grace for running agents, then all waiting writes and their hints."""
    with _starting:
        if not _running:
            return
        services = list(_running)
        _running.clear()
    atexit.unregister(stop)
    # Hints go out until the end: released tasks are offered to other workers, and readers elsewhere hear of them.
    late = [service for service in services if service in (broadcast, celery)]
    _stop_in_turn([service for service in services if service not in late])
    _write_the_rest()
    for service in reversed(late):
        service.stop()


def _write_the_rest() -> None:
    """Write what waits for the database. A database that hangs delays all of it together by LAST_SECONDS, and the last
    row of this process by A2A_CALL_SECONDS more."""
    ends = monotonic() + LAST_SECONDS
    tally.drain(settings.A2A_CALL_SECONDS)
    recorder.offer()
    if not recorder.drain(ends - monotonic()):
        log.error("the process ends before all exchanges are recorded")
    _announce(ended=True)
    advances.forget()
    bridge.stop(ends - monotonic())


def _stop_in_turn(services: Sequence[Service]) -> None:
    """Stop the services in the reverse order of their start.

    All routines hear of it first. While the database hangs, each waits for an answer in its last round, and they wait
    at the same time then, not one after the other.
    """
    for service in services:
        if isinstance(service, Routine):
            service.stopping.set()
    for service in reversed(services):
        service.stop()
