"""What keeps this process from doing its work, in sentences."""

import asyncio
import logging

from django.conf import settings
from django.db import connection

from tasks_app import services
from tasks_app.bridge import DoSlowly, bridge
from tasks_app.readers import readers
from tasks_app.runner import runner
from tasks_app.sweeper import sweeper

log = logging.getLogger(__name__)
PATIENCE = 2.0
"""Seconds the database may take to answer."""


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
    try:
        async with asyncio.timeout(PATIENCE):
            await bridge.ask(DoSlowly(_look))
    except TimeoutError:
        found.append(f"database: no answer within {PATIENCE:g} s")
    except Exception as error:  # noqa: BLE001  # whatever it is, it is not ready
        log.warning("the database does not answer: %s", error)
        found.append("database: it cannot be reached, see the log")
    return found


def lags() -> list[str]:
    """What makes things late, while the process can do its work."""
    return services.troubles()


def _look() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select 1")
