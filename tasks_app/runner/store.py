"""One write of a run, repeated until its result is certain: a database that is away fails no run. Nor does a storage of
files that fails for a moment."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from django.conf import settings

from a2a.actions import Action
from a2a.mistakes import WrongValue
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.locks import LockRefused
from tasks_app.database.rows import FileRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Append, Appended, NewerMessage, notify, run_seq
from tasks_app.files import store_action
from tasks_app.hints import Reached
from tasks_app.runner.stopped import FileRefused, LostLease, MessageWaits, WriteFailed

log = logging.getLogger(__name__)
SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two repetitions while the database, or the storage of files, is away."""


async def store(item: Append, ends: float, on_outage: Callable[[], None]) -> int:
    """Write the item once; return the number of its last event. Raises LostLease and MessageWaits. Raises WriteFailed
    when the database accepts nothing until `ends` on the loop's clock, and for as long as a lease.

    An item whose connection was lost may have been committed. So it is repeated unchanged: the database refuses it if
    the run has written since `after`, and then the task's row says whether it was this item.
    """
    lease, time = settings.A2A_LEASE_SECONDS, asyncio.get_running_loop().time
    since, pause = 0.0, SHORTEST
    while True:
        try:
            # A locked row is asked for as long as the lease lasts: after that another process may repeat the work.
            result = await bridge.ask(item, patience=lease)
            if isinstance(result, NewerMessage):
                raise MessageWaits
            seq = result.seq if isinstance(result, Appended) else await _find_seq(item)
        except LockRefused as error:
            raise WriteFailed from error
        except AWAY as error:
            since = since or time()
            if time() > max(ends, since + lease):
                raise WriteFailed from error
            if time() > since + lease:
                on_outage()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)
            continue
        if seq is None:
            raise LostLease
        if since:
            log.info("task %s: written after %.1f s without the database", item.task_id, time() - since)
        return seq


async def store_files(
    action: Action, task_id: str, waiting: Sequence[FileRow], on_outage: Callable[[], None]
) -> tuple[Action, list[FileRow]]:
    """Store the large parts of an action as `store_action` does, but repeat what fails for as long as a lease. Raises
    WrongValue, and FileRefused if the storage takes nothing for so long."""
    lease, time = settings.A2A_LEASE_SECONDS, asyncio.get_running_loop().time
    since, pause = 0.0, SHORTEST
    while True:
        try:
            return await store_action(action, task_id, waiting)
        except WrongValue:
            raise
        except Exception as error:  # an operator chooses the storage, and it may raise anything
            if not since:
                log.warning("task %s: a file was not stored yet: %s", task_id, error)
            since = since or time()
            if time() > since + lease:
                if not isinstance(error, AWAY):
                    raise FileRefused(str(error)) from error
                on_outage()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)


async def _find_seq(item: Append) -> int | None:
    """Return the number of the item's last event if it was written; None if the task is not this run's any more."""
    seq = await bridge.ask(DoSlowly(partial(run_seq, item.task_id, item.fence or 0)))
    if seq is None or seq == item.after:
        return None
    notify([Reached(item.task_id, seq, item.state)])  # Its commit had no result, so that no reader was notified.
    return seq
