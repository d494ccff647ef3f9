"""What keeps this process from doing its work, in sentences."""

import asyncio
import logging
from datetime import timedelta
from functools import cache, partial

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tasks_app import clock, services
from tasks_app.bridge import DoSlowly, bridge
from tasks_app.deliveries import oldest_due, sender
from tasks_app.readers import readers
from tasks_app.runner import runner
from tasks_app.sweeper import sweeper

log = logging.getLogger(__name__)
PATIENCE = 2.0
"""Seconds the database may take to answer."""
OVERDUE = timedelta(seconds=60)
"""By how much deliveries may be late before it is said."""


async def problems() -> list[str]:
    """Empty when all is well."""
    found = []
    if readers.draining:
        found.append("draining: the process is going down")
    if sweeper.age > 3 * settings.A2A_SWEEP_SECONDS + 1:
        due = f"one is due every {settings.A2A_SWEEP_SECONDS:g} s"
        found.append(f"sweeper: the last sweep was {sweeper.age:.0f} s ago, {due}")
    if not runner.alive:
        found.append("runner: the loop on which agents run has ended; restart the process")
    if not sender.alive:
        found.append("deliveries: the thread that sends has ended; restart the process")
    try:
        async with asyncio.timeout(PATIENCE):
            if await bridge.ask(DoSlowly(lacking)):
                found.append("database: migrations are missing, run manage.py migrate")
    except TimeoutError:
        found.append(f"database: no answer within {PATIENCE:g} s")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is not ready
        log.warning("the database does not answer: %s", error)
        found.append("database: it cannot be reached, see the log")
    return found


async def lags() -> list[str]:
    """What makes things late, while the process can do its work."""
    return [*services.troubles(), *await _overdue()]


async def _overdue() -> list[str]:
    try:
        async with asyncio.timeout(PATIENCE):
            since = await bridge.ask(DoSlowly(partial(oldest_due, OVERDUE)))
    except Exception:  # noqa: BLE001  # problems() says what is wrong with the database
        return []
    if since is None:
        return []
    return [f"deliveries: the oldest that is due waits for {(clock.now() - since).total_seconds():.0f} s already"]


def lacking() -> int:
    """How many of our migrations the database has not had."""
    return len(_wanted() - MigrationRecorder(connection).applied_migrations().keys())


@cache
def _wanted() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)
