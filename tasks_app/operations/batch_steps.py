"""Steps of batches: each notes the ends of items, writes results and progress, and begins the next items.

A step can be done again, by any process: an item that was sent before is found by the id of its message.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import orjson
from django.conf import settings
from msgspec.structs import replace

from a2a.errors import Error, RateLimited, TaskNotCancelable, TaskNotFound, Unavailable
from a2a.events import Event
from a2a.requests import CancelTask
from a2a.states import TERMINAL
from tasks_app import clock
from tasks_app.batches import results, rows
from tasks_app.batches.rows import Progress, Turn
from tasks_app.callers.scopes import CANCEL
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log import Append, change
from tasks_app.operations.batch_items import find_former, send_item
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context

R = TypeVar("R")
PAGE = 100
"""Results that are written together."""


class Step:
    """The outcome of one step of a batch that goes on."""

    def __init__(self, at_work: set[str], *, has_more: bool, pause: float = 0) -> None:
        self.at_work = at_work
        self.has_more = has_more
        """Whether the next step may come at once."""
        self.pause = pause
        """Seconds to wait at most, after a temporary refusal."""

    @property
    def is_refused(self) -> bool:
        """Whether an item was refused for the moment. Such a refusal asks for a second at least."""
        return self.pause >= 1


async def ask(function: Callable[[], R]) -> R:
    """Return the result of a function on the write lane."""
    return await bridge.ask(Do(function), settings.A2A_LEASE_SECONDS)


async def advance(turn: Turn, *, is_probe: bool = False) -> Step | None:
    """Do one step of a batch: note ends, write results, and begin items. Return None if the batch is over.

    A probe begins one item at most, because the step before was refused.
    """
    progress = await ask(partial(rows.look, turn.id))
    if progress is None:
        await ask(partial(rows.finish, turn.id))
        return None
    if progress.state in TERMINAL:
        return await _end_items(turn, progress)
    if (more := await _write(turn, progress)) is None:
        return None
    began, pause = await _begin(replace(turn, batch_size=1) if is_probe else turn, progress)
    # Items that have begun may end before their news is listened for, so the next step looks once more.
    return Step({*progress.at_work, *progress.waiting, *began}, has_more=more or bool(began), pause=pause)


async def _end_items(turn: Turn, progress: Progress) -> Step | None:
    """Cancel the items of a batch that was canceled. It is over when none is left."""
    await _cancel(turn, (*progress.at_work, *progress.waiting, *await _attach_former(turn)))
    await ask(partial(rows.look, turn.id))
    await ask(partial(rows.finish, turn.id))
    return None


async def _cancel(turn: Turn, task_ids: Iterable[str]) -> None:
    """Cancel tasks of items of a batch that was canceled."""
    # The scopes are those of the call, which may lack that for cancelling. The call that ended the batch had it.
    caller = replace(turn.caller, scopes=turn.caller.scopes | {CANCEL.scope})
    for task_id in task_ids:
        with suppress(TaskNotCancelable, TaskNotFound):
            await perform(CancelTask(id=task_id), Context(caller=caller, actor="keeper"))


async def _attach_former(turn: Turn) -> Iterable[str]:
    """Note the tasks of items whose process sent them and died before it noted them; return these tasks."""
    items = await ask(partial(rows.next_items, turn.id, turn.max_concurrent))
    tasks = {item.place: task_id for item in items if (task_id := await find_former(turn, item)) is not None}
    await ask(partial(rows.attach, turn.id, tasks, {}))
    return tasks.values()


async def _write(turn: Turn, progress: Progress) -> bool | None:
    """Write the results that come next, with the progress. Return whether there are more; None if the batch is over."""
    cursor = progress.cursor
    items = await ask(partial(rows.ended_after, turn.id, cursor, PAGE))
    if not items:
        return False
    texts = await bridge.ask(DoSlowly(partial(results.results_of, items), None), settings.A2A_LEASE_SECONDS)
    end = cursor + len(texts)
    is_over = end == turn.size
    has_news = results.has_news(cursor, end, turn.size)
    events: list[Event] = results.chunk_events(texts, cursor, turn.size)
    if is_over:
        events.append(results.progress_event(turn, progress, results.end_state(progress)))
    elif has_news and progress.reported < progress.ended < turn.size:
        events.append(results.progress_event(turn, progress))
    now = clock.now()
    item = change(turn.id, progress.context_id, events, now=now, actor="keeper", with_deliveries=True)
    item.owner_id = turn.caller.owner_id
    outcome = await ask(partial(rows.write, turn.id, item, before=cursor, cursor=end, is_over=is_over))
    if outcome is None:
        return True  # Its task was canceled, which the next step finds.
    Append.after_commit([item], [outcome])
    return None if is_over else len(items) == PAGE or len(texts) < len(items)


async def _begin(turn: Turn, progress: Progress) -> tuple[list[str], float]:
    """Begin the next items as far as there are places. Return their tasks, and the seconds of a pause."""
    room = min(turn.max_concurrent - len(progress.at_work), turn.batch_size)
    if turn.optimization == "resources" and progress.at_work:
        room = 0
    items = await ask(partial(rows.next_items, turn.id, room))
    if not items:
        return [], 0
    turn = replace(turn, caller=await ask(partial(rows.caller_now, turn.id)))
    outcomes = await asyncio.gather(*(send_item(turn, item) for item in items))
    tasks = {item.place: one for item, one in zip(items, outcomes, strict=True) if isinstance(one, str)}
    errors = {
        item.place: orjson.dumps({"reason": one.reason, "message": one.message}).decode()
        for item, one in zip(items, outcomes, strict=True)
        if isinstance(one, Error) and not isinstance(one, RateLimited | Unavailable)
    }
    pauses = [one.retry_after for one in outcomes if isinstance(one, RateLimited | Unavailable)]
    # This process may have been frozen for so long that another one has ended the canceled batch.
    await _cancel(turn, await ask(partial(rows.attach, turn.id, tasks, errors)))
    return list(tasks.values()), max(pauses, default=0.0) or (0.001 if errors or not tasks else 0)
