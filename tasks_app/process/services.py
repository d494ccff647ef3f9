"""The background work of a process: who runs agents, who wakes whom, the sweeper, the sender. Started once, stopped in
order."""

import atexit
import gc
import logging
import threading
from typing import Literal, Protocol, assert_never

from django.conf import settings

from tasks_app import webhooks
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log import release_all
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.hints.broadcast import broadcast
from tasks_app.hints.dispatch import CeleryDispatcher, LocalDispatcher
from tasks_app.process.census import census
from tasks_app.process.memory import return_large_blocks
from tasks_app.runner.doors import doors
from tasks_app.runner.runner import runner
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.processes import process_row, trouble_sources
from tasks_app.upkeep.retention import retention_loop
from tasks_app.upkeep.sweeper import sweeper
from tasks_app.webhooks import sender

log = logging.getLogger(__name__)
Role = Literal["web", "worker", "child"]
"""With doors; a Celery worker with slots of its own; the forked child of one, which runs one task at a time."""


class Part(Protocol):
    """Something that runs beside the doors."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


local, celery = LocalDispatcher(), CeleryDispatcher()
_running: list[Part] = []
_starting = threading.Lock()


def parts_of(role: Role) -> list[Part]:
    """Return the parts that run in a process, in the order of their start, the reverse of the order of their end."""
    joined: list[Part] = [broadcast] if settings.REDIS_URL else []
    match role:
        case "web" if settings.CELERY_BROKER_URL:
            return [*joined, celery, census, sender, sweeper, retention_loop, doors]
        case "web":
            return [*joined, runner, local, census, sender, sweeper, retention_loop, doors]
        case "worker":
            # Its own offers it takes up itself: without a broker it still finds what there is to do.
            return [*joined, celery, runner, local, sender, sweeper, retention_loop]
        case "child":
            # What it has to deliver or to delete, others see to when they look.
            return [*joined, celery, runner, local, sweeper]
        case _:
            assert_never(role)


def start(role: Role = "web") -> None:
    """Starts what is not running yet; cheap when all is."""
    if _running:
        return
    with _starting:
        if _running:
            return
        return_large_blocks()
        parts = parts_of(role)
        sweeper.renew = runner.renew
        process_row.begin(role)
        _announce()
        for part in parts:
            part.start()
        atexit.register(stop)
        _running.extend(parts)
    # What is loaded by now stays, and collections need not look at it: each full one stopped all threads for 60 ms.
    gc.collect()
    gc.freeze()


def take_over() -> None:
    """Take up interrupted tasks at the start of the only process: no other one can hold a lease."""
    if bridge.do(Do(release_all)):
        log.info("%d interrupted tasks are taken up again", reclaim_tasks())
    bridge.do(Do(webhooks.release_all))


def troubles() -> list[str]:
    """Return sentences about troubles that make things late, without keeping the process from its work."""
    hints = [trouble for trouble in (celery.trouble, broadcast.trouble, broadcast.deaf) if trouble]
    return [*hints, *runner.troubles(), *doors.troubles()]


trouble_sources.extend((troubles, recorder.troubles))


def _announce(*, ended: bool = False) -> None:
    """Writes the row of this process, and sets its clock by the database's before anything has a time from it."""
    try:
        process_row.write(recorder.lost, ended=ended)
    except Exception:
        log.exception("the row of this process could not be written; the sweeper writes it")


def drain() -> None:
    """On the loop of the doors: no new work, and every stream and waiting call is answered now."""
    readers.drain()


def stop() -> None:
    """Ends the background work: no more claims, a grace for what runs, then everything that waits is written, and
    told."""
    with _starting:
        if not _running:
            return
        parts = list(_running)
        _running.clear()
    atexit.unregister(stop)
    early = [part for part in parts if part not in (broadcast, celery)]
    for part in reversed(early):
        part.stop()
    recorder.offer()
    if not recorder.drain(settings.A2A_GRACE_SECONDS + settings.A2A_CALL_SECONDS):
        log.error("the process ends before all exchanges are recorded")
    _announce(ended=True)
    bridge.stop()
    # What was given back is offered to other workers, and followers elsewhere hear of it.
    for part in reversed(parts):
        if part not in early:
            part.stop()
