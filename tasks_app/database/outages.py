"""Work of a run that an outage of the database must not fail: it is repeated for as long as a lease."""

import asyncio
import logging
import time
from typing import TypeVar

from django.conf import settings

from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.work import Work

log = logging.getLogger(__name__)
PAUSE = 0.5
"""Seconds between two repetitions."""
Result = TypeVar("Result")


async def persist(item: Work[Result], what: str) -> Result:
    """Return the result of an item that may be done twice without harm. Raises what the database raises to the end.

    `what` begins a line of the log: "task 7: its memory". No limit of a lane refuses the item, because a run
    is work of our own.
    """
    ends = _end()
    while True:
        try:
            return await bridge.ask(item, patience=settings.A2A_CALL_SECONDS)
        except AWAY as error:
            _check_time(ends, what, error)
            await asyncio.sleep(PAUSE)


def persist_now(item: Work[Result], what: str) -> Result:
    """Do what `persist` does, from a thread that may wait."""
    ends = _end()
    while True:
        try:
            return bridge.do(item)
        except AWAY as error:
            _check_time(ends, what, error)
            time.sleep(PAUSE)


def _end() -> float:
    return time.monotonic() + settings.A2A_LEASE_SECONDS


def _check_time(ends: float, what: str, error: Exception) -> None:
    """Log that the item waits. Raises the error if the lease is over."""
    if time.monotonic() > ends:
        raise error
    log.warning("%s waits for the database: %s", what, error)
