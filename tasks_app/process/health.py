"""The health of this process: sentences about problems, which keep it from its work, and about delays."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Generic, TypeVar

from django.conf import settings
from msgspec import Struct

from a2a.states import UNFINISHED, TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.schema import lacking
from tasks_app.database.sessions import FileGone
from tasks_app.database.work import DoApart
from tasks_app.event_log.readers import readers
from tasks_app.models import Task
from tasks_app.process.vitals import Vitals, pulse
from tasks_app.runner.runner import runner
from tasks_app.upkeep import processes
from tasks_app.upkeep.sweeps import sweeper
from tasks_app.webhooks import oldest_due, sender

log = logging.getLogger(__name__)
R = TypeVar("R")
PATIENCE = 2.0
"""Seconds that the database may take to answer."""
FRESH = 1.0
"""Seconds for which a look is reused."""
OVERDUE = timedelta(seconds=60)
"""How late deliveries and runs may be before the report names them."""


class Report(Struct, frozen=True):
    """The answer of /readyz."""

    problems: list[str]
    lags: list[str]


class Load(Struct, frozen=True):
    """The numbers of /health. To count the tasks takes long where very many wait, so /readyz does without them."""

    vitals: Vitals
    active_tasks: int | None
    """Tasks of all callers that are queued or running; None if the database does not say."""


class Latest(Generic[R]):
    """The newest result of a look, shared by all requests of a second, so that many probes cost no more than one."""

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, R]]) -> None:
        self.begin = begin
        self.at = float("-inf")
        self.loop: asyncio.AbstractEventLoop | None = None
        self.look: asyncio.Task[R] | None = None

    async def latest(self) -> R:
        """Return the result of a look that was begun at most a second ago."""
        loop = asyncio.get_running_loop()
        if self.look is None or self.loop is not loop or (self.look.done() and time.monotonic() - self.at > FRESH):
            self.at, self.loop, self.look = time.monotonic(), loop, loop.create_task(self.begin())
        # The request that began the look may be cancelled while others wait for it, so the look is shielded.
        return await asyncio.shield(self.look)


async def _report() -> Report:
    """Find problems and lags. A process that is beyond help is named in both; the report names it once."""
    problems, lags = await asyncio.gather(find_problems(), find_lags())
    return Report(problems, [sentence for sentence in lags if sentence not in problems])


async def _load() -> Load:
    return Load(pulse.look(), await count_active())


reports = Latest(_report)
"""The reports of this process."""
loads = Latest(_load)
"""The load of this process."""


async def find_problems() -> list[str]:
    """Return sentences about everything that keeps the process from its work."""
    problems = []
    if readers.draining:
        problems.append("draining: the process is going down")
    problems += _find_late_sweeps()
    problems += filter(None, [runner.death, runner.helpless])
    if not sender.alive:
        problems.append("deliveries: its thread has ended; restart the process")
    problems += bridge.troubles(settings.A2A_CALL_SECONDS)
    try:
        async with asyncio.timeout(PATIENCE):
            if await bridge.ask(DoApart(lacking)):
                problems.append("database: migrations are missing, run manage.py migrate")
    except TimeoutError:
        problems.append(f"database: no answer within {PATIENCE:g} s")
    except FileGone as error:
        problems.append(f"database: {error}")
    except Exception as error:  # noqa: BLE001  # any error means that the process is not ready
        log.warning("the database does not answer: %s", error)
        problems.append("database: it cannot be reached, see the log")
    return problems


def _find_late_sweeps() -> list[str]:
    """Return sentences about late sweeps and writes.

    Writes are looked at apart from sweeps: on a full disk every read still works, and only a write shows the problem.
    """
    limit, due = 3 * settings.A2A_SWEEP_SECONDS + 1, f"one is due every {settings.A2A_SWEEP_SECONDS:g} s"
    problems = []
    if sweeper.age > limit:
        problems.append(f"sweeper: the last sweep was {sweeper.age:.0f} s ago, {due}")
    if (age := processes.process_row.write_age) > limit:
        problems.append(f"writes: the sweeper last wrote {age:.0f} s ago, {due}; see the log")
    return problems


async def find_lags() -> list[str]:
    """Return sentences about delays of a process that can do its work."""
    try:
        async with asyncio.timeout(PATIENCE):
            lags = await bridge.ask(DoApart(_find_late_work))
    except Exception:  # noqa: BLE001  # find_problems() reports the database
        lags = []
    return processes.troubles() + bridge.lags(settings.A2A_CALL_SECONDS) + lags


async def count_active() -> int | None:
    """Return the number of tasks that are queued or running; None if the database does not answer."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await bridge.ask(DoApart(count_unfinished))
    except Exception:  # noqa: BLE001  # find_problems() reports the database
        return None


def count_unfinished() -> int:
    """Return the number of tasks of all callers that are queued or running, from an index alone."""
    return Task.objects.filter(state__in=sorted(UNFINISHED)).count()


def _find_late_work() -> list[str]:
    lags = []
    if since := oldest_due(OVERDUE):
        age = (clock.shared() - since).total_seconds()
        lags.append(f"deliveries: the oldest that is due has waited for {age:.0f} s")
    # Any late task will do. There may be very many, and no index has them by age.
    waiting = Task.objects.filter(state=TaskState.SUBMITTED, status_at__lt=clock.now() - OVERDUE)
    waiting = waiting.exclude(not_before__gt=clock.now())
    for agent, queue in waiting.values_list("agent", "queue")[:1]:
        lags.append(
            f"tasks: one of agent {agent} has waited to be run for more than {OVERDUE.total_seconds():.0f} s; "
            f"are there enough workers of queue {queue} that have this agent?"
        )
    return lags
