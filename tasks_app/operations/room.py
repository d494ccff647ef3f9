"""Room for large answers to calls that wait: each is read once earlier answers of its owner have been sent.

A task may end for thousands of calls at once. If each read the task then, those of clients that do not read would fill
the memory. A refusal would be no remedy, because the answer may have begun.

The account also has the large requests of such calls until they are answered, so the first answer waits for none of
them.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from weakref import WeakValueDictionary

from django.conf import settings

from a2a.errors import RateLimited, Unavailable
from tasks_app.event_log.readers import readers
from tasks_app.limits.accounts import account
from tasks_app.off_loop import LARGE
from tasks_app.operations.operation import CallerLeft, Context

PAUSE = 0.05
"""Seconds between two looks of the first answer in a line."""
_lines: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()
"""The lines of answers that wait for room, by the loop and the owner. Only the first of each looks."""
_requests: Counter[int] = Counter()
"""The bytes in the account of large requests of calls that wait, by owner."""


@contextmanager
def counting_request(context: Context) -> Iterator[None]:
    """Count the large request of a call as that of one that waits, for the length of the block."""
    owner_id, size = context.caller.owner_id, context.request_weight
    _requests[owner_id] += size
    try:
        yield
    finally:
        _requests[owner_id] -= size
        if not _requests[owner_id]:
            del _requests[owner_id]


def has_room(context: Context, size: int) -> bool:
    """Take the bytes of an answer from the account of its caller, and return True, if there is room now."""
    try:
        context.reserve(size)
    except (RateLimited, Unavailable):
        return False
    return True


async def make_room(context: Context, size: int) -> bool:
    """Take the bytes of an answer from the account of its caller when there is room. Return False if the patience of
    the context ends before, unless its caller has left. Raises CallerLeft then, and RateLimited and Unavailable for a
    call that must not wait, and when the process goes down."""
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
        if await _has_left(context):
            raise CallerLeft from None
        return False
    return True


async def _has_left(context: Context) -> bool:
    if context.departure is None:
        return False
    leaving = asyncio.ensure_future(context.departure())
    has_left, _ = await asyncio.wait({leaving}, timeout=0)
    leaving.cancel()
    return bool(has_left)


async def _take_turn(context: Context, size: int) -> None:
    while not has_room(context, size):
        if size > LARGE and _has_room_beside_requests(context.caller.owner_id, size):
            context.weight = account.hold_owed(context.caller.owner_id, size)
            return
        if readers.draining:
            raise Unavailable
        await asyncio.sleep(PAUSE)


def _has_room_beside_requests(owner_id: int, size: int) -> bool:
    """Return whether an answer would have room without the requests of calls that wait, and is the only one of its
    owner. If such calls waited for each other, all of them would wait for ever."""
    others = account.totals["bodies"] - _requests.total()
    is_only = account.amounts.get(("bodies", owner_id), 0) <= _requests.get(owner_id, 0)
    return is_only and others + min(size, settings.A2A_OWNER_BODY_BYTES) <= settings.A2A_BODIES_BYTES
