"""Room for large answers to calls that wait: each is read once earlier answers of its owner have been sent.

A task may end for thousands of calls at once. If each read the task then, those of clients that do not read would fill
the memory. A refusal would be no remedy, because the answer may have begun.
"""

import asyncio
from time import perf_counter
from weakref import WeakValueDictionary

from a2a.errors import RateLimited, Unavailable
from tasks_app.event_log.readers import readers
from tasks_app.operations.operation import Context

PAUSE = 0.05
"""Seconds between two looks of the first answer in a line."""
_lines: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()
"""The lines of answers that wait for room, by the loop and the owner. Only the first of each looks."""


def has_room(context: Context, size: int) -> bool:
    """Take the bytes of an answer from the account of its caller, and return True, if there is room now."""
    try:
        context.reserve(size)
    except (RateLimited, Unavailable):
        return False
    return True


async def make_room(context: Context, size: int) -> bool:
    """Take the bytes of an answer from the account of its caller when there is room. Return False if the patience of
    the context ends before. Raises RateLimited and Unavailable for a call that must not wait, and when the process goes
    down."""
    if not context.waits_for_room:
        context.reserve(size)
        return True
    line = _lines.setdefault((id(asyncio.get_running_loop()), context.caller.owner_id), asyncio.Lock())
    if not line.locked() and has_room(context, size):
        return True
    try:
        async with asyncio.timeout(max(0.0, context.patience - perf_counter())):
            async with line:
                await _take_turn(context, size)
    except TimeoutError:
        return False
    return True


async def _take_turn(context: Context, size: int) -> None:
    while not has_room(context, size):
        if readers.draining:
            raise Unavailable
        await asyncio.sleep(PAUSE)
