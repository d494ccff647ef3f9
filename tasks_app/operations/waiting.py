"""Waiting for a task: a reader of its log that only looks for the moment when no agent works on the task any more."""

import asyncio
from contextlib import nullcontext
from time import perf_counter

from django.conf import settings

from a2a.answers import Answer, Result
from a2a.errors import TaskNotFound, Unavailable
from a2a.states import QUIET
from tasks_app.callers import access
from tasks_app.database.bridge import bridge
from tasks_app.event_log import ReadOrMeasure, ReadTask
from tasks_app.event_log.readers import Reader, readers
from tasks_app.operations.operation import CallerLeft, Context, Wait
from tasks_app.operations.room import counting_request, has_room, make_room

WATCH_AFTER = 1.0
"""Seconds of a wait after which it is watched whether the caller has left. Most waits end before."""
RETRY_SECONDS = 2
"""The pause before a retry that a caller is asked for when the process goes down."""

STORED = "it goes down, and the message is stored; get the task, or send the message again with the same id"
"""The advice to a caller whose wait ends with the process. A second message would begin a second task."""


async def wait_on(wait: Wait, context: Context) -> Result | Wait:
    """Return the task when no agent works on it, or as it is at the limit of the operator or of the
    agent, which is never an error.

    If the context's patience ends before that, return the wait itself; another call goes on with it. Raises CallerLeft;
    TaskNotFound if the task was deleted meanwhile; Unavailable if the process goes down first.
    """
    now = perf_counter()
    limit = wait.began + min(settings.A2A_WAIT_SECONDS or float("inf"), wait.seconds) - now
    patience = context.patience - now
    if patience <= 0:
        return wait
    with counting_request(context) if context.request_weight else nullcontext():
        return await _wait(wait, context, limit, patience)


async def _wait(wait: Wait, context: Context, limit: float, patience: float) -> Result | Wait:
    """Wait within the limit and the patience, in seconds from now, as `wait_on` does."""
    async with readers.reader(wait.task_id, wait.context_id, wait.after) as reader:
        # A reader also knows the events from just before it was opened, and its poll finds those without a hint.
        is_quiet = await _wait_until_quiet(reader, context, min(limit, patience))
    if reader.is_over:
        raise CallerLeft
    if readers.draining and reader.state not in QUIET:
        raise Unavailable(retry_after=RETRY_SECONDS, taskId=wait.task_id, detail=STORED)
    if not is_quiet and patience < limit:
        return wait
    return await _answer(wait, context) or wait


async def _wait_until_quiet(reader: Reader, context: Context, seconds: float) -> bool:
    """Wait until no agent works on the task or the caller has left. Return False if the time is over before that."""
    if await reader.quiet(min(seconds, WATCH_AFTER)):
        return True
    if seconds <= WATCH_AFTER:
        return False
    leaving = asyncio.ensure_future(context.departure()) if context.departure else None
    try:
        if leaving:
            leaving.add_done_callback(lambda _: reader.leave())
        return await reader.quiet(seconds - WATCH_AFTER)
    finally:
        if leaving:
            leaving.cancel()


async def _answer(wait: Wait, context: Context) -> Answer | None:
    """Return the task as it is now; None for a large one, if the patience of the context ends before there is room."""
    look = ReadTask(
        task_id=wait.task_id,
        sight=access.sight(context.caller, wait.task_id),
        history=wait.history_length != 0,
        is_owed=True,
    )
    read = await bridge.ask(ReadOrMeasure(look), departure=context.departure)
    size = read if isinstance(read, int) else read.size if read else 0
    if isinstance(read, int) or not has_room(context, size):
        del read  # It may be large, and the wait long.
        if not await make_room(context, size):
            return None
        read = await bridge.ask(look, departure=context.departure)
    if read is None:
        raise TaskNotFound(taskId=wait.task_id)
    context.exchange.about(wait.task_id, wait.context_id, read.document.seq)
    return Answer(task=read.document, history_length=wait.history_length)
