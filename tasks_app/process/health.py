"""Sentences about everything that keeps this process from its work."""

import asyncio
import logging
import time
from datetime import timedelta

from django.conf import settings
from msgspec import Struct

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.schema import lacking
from tasks_app.database.work import DoApart
from tasks_app.event_log.readers import readers
from tasks_app.models import Task
from tasks_app.runner.runner import runner
from tasks_app.upkeep import processes
from tasks_app.upkeep.sweeper import sweeper
from tasks_app.webhooks import oldest_due, sender

log = logging.getLogger(__name__)
PATIENCE = 2.0
"""Seconds the database may take to answer."""
FRESH = 1.0
"""Seconds for which a report is good."""
OVERDUE = timedelta(seconds=60)
"""By how much deliveries and runs may be late before it is said."""


class Report(Struct, frozen=True):
    """The answer of /readyz."""

    problems: list[str]
    lags: list[str]


class Reports:
    """The report of the last second, made once for all who ask: however many do, it costs the database nothing."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self.loop: asyncio.AbstractEventLoop | None = None
        self.look: asyncio.Task[Report] | None = None

    async def latest(self) -> Report:
        """Return a report that was begun a second ago at most."""
        loop = asyncio.get_running_loop()
        if self.look is None or self.loop is not loop or (self.look.done() and time.monotonic() - self.at > FRESH):
            self.at, self.loop, self.look = time.monotonic(), loop, loop.create_task(_report())
        # Who asked first may leave before the others.
        return await asyncio.shield(self.look)


reports = Reports()
"""The reports of this process."""


async def _report() -> Report:
    """Look at everything. A process that is beyond help says so in both, and the report says it once."""
    found, late = await asyncio.gather(problems(), lags())
    return Report(found, [sentence for sentence in late if sentence not in found])


async def problems() -> list[str]:
    """Return sentences about everything that keeps the process from its work; empty when all is well."""
    found = []
    if readers.draining:
        found.append("draining: the process is going down")
    found += _overdue()
    if not runner.alive:
        found.append("runner: its loop or its heartbeat has ended; restart the process")
    if runner.helpless:
        found.append(runner.helpless)
    if not sender.alive:
        found.append("deliveries: the thread that sends has ended; restart the process")
    found += bridge.troubles(settings.A2A_CALL_SECONDS)
    try:
        async with asyncio.timeout(PATIENCE):
            if await bridge.ask(DoApart(lacking)):
                found.append("database: migrations are missing, run manage.py migrate")
    except TimeoutError:
        found.append(f"database: no answer within {PATIENCE:g} s")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is not ready
        log.warning("the database does not answer: %s", error)
        found.append("database: it cannot be reached, see the log")
    return found


def _overdue() -> list[str]:
    """Return sentences about sweeps that are overdue. Each begins with a write: a disk that is full stops no read."""
    limit, due = 3 * settings.A2A_SWEEP_SECONDS + 1, f"one is due every {settings.A2A_SWEEP_SECONDS:g} s"
    found = []
    if sweeper.age > limit:
        found.append(f"sweeper: the last sweep was {sweeper.age:.0f} s ago, {due}")
    if (age := processes.process_row.written_age) > limit:
        found.append(f"writes: the sweeper last wrote {age:.0f} s ago, {due}; see the log")
    return found


async def lags() -> list[str]:
    """Return sentences about delays, while the process can do its work."""
    try:
        async with asyncio.timeout(PATIENCE):
            late: list[str] = await bridge.ask(DoApart(_late))
    except Exception:  # noqa: BLE001  # problems() says what is wrong with the database
        late = []
    return processes.troubles() + bridge.lags(settings.A2A_CALL_SECONDS) + late


def _late() -> list[str]:
    found = []
    if since := oldest_due(OVERDUE):
        age = (clock.shared() - since).total_seconds()
        found.append(f"deliveries: the oldest that is due waits for {age:.0f} s already")
    # Any one: there may be a great many, and no index has them by age.
    waiting = Task.objects.filter(state="submitted", status_at__lt=clock.now() - OVERDUE)
    waiting = waiting.exclude(not_before__gt=clock.now())
    for agent, queue in waiting.values_list("agent", "queue")[:1]:
        found.append(
            f"tasks: one of agent {agent} waits for more than {OVERDUE.total_seconds():.0f} s to be run; "
            f"are there workers of queue {queue} that know it, and enough of them?"
        )
    return found
