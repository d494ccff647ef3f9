"""One write of a run, asked for until it is known whether it was done: a database that is away fails no run."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError

from a2a.errors import Unavailable
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Append, Appended, NewerMessage, notify, run_seq
from tasks_app.hints import Reached
from tasks_app.runner.stopped import LostLease, MessageWaits, WriteFailed

log = logging.getLogger(__name__)
AWAY = (OperationalError, InterfaceError, InternalError, Unavailable)
"""Errors of a database that is away, full, read-only or overloaded. It may have done the work or not."""
SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two asks while the database is away."""


async def store(item: Append, ends: float, cut_off: Callable[[], None]) -> int:
    """Writes the item once, and returns the number of its last event. Raises LostLease; MessageWaits; and
    WriteFailed when the database took nothing until the run's end on the loop's clock, and for as long as a lease.

    An item that was asked for in vain may have been written: its connection was lost after the commit. So it is asked
    for again as it is. The database refuses it if the run has written since `after`, and the row says which it was.
    """
    lease, time = settings.A2A_LEASE_SECONDS, asyncio.get_running_loop().time
    since, pause = 0.0, SHORTEST
    while True:
        try:
            # A row that somebody else holds is asked for as long as the lease: then somebody else may do the work over.
            result = await bridge.ask(item, patience=lease)
            if isinstance(result, NewerMessage):
                raise MessageWaits
            seq = result.seq if isinstance(result, Appended) else await _written(item)
        except LockRefused as error:
            raise WriteFailed from error
        except AWAY as error:
            since = since or time()
            if time() > max(ends, since + lease):
                raise WriteFailed from error
            if time() > since + lease:
                cut_off()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)
            continue
        if seq is None:
            raise LostLease
        if since:
            log.info("task %s: written after %.1f s without the database", item.task_id, time() - since)
        return seq


async def _written(item: Append) -> int | None:
    """The number of the item's last event if it was written; None if the task is not this run's any more."""
    seq = await bridge.ask(DoSlowly(partial(run_seq, item.task_id, item.fence or 0)))
    if seq is None or seq == item.after:
        return None
    notify([Reached(item.task_id, seq, item.state)])  # The commit was not answered, so nobody was.
    return seq
