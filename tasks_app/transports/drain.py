"""Calls that are under way when the server ends."""

import asyncio

from a2a.errors import Unavailable
from tasks_app.event_log.readers import readers
from tasks_app.operations.waiting import RETRY_SECONDS


def take_back_cancellation() -> Unavailable | None:
    """Return the error for a call that was cancelled because the server ends. Its asyncio task goes on and can answer.

    Return None for any other cancellation, which must be raised again. The server waits two seconds for calls that are
    under way, and then cancels them. A call that waits for a database that hangs takes longer.
    """
    task = asyncio.current_task()
    if not readers.draining or task is None:
        return None
    task.uncancel()
    return Unavailable(retry_after=RETRY_SECONDS)
