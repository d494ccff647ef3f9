"""The keeper goes on with batches: it begins items, notes their ends, and writes progress and results.

The rows are the queue: a batch that is due may be taken by the keeper of any process, and each step can be done again.
An item is sent as a message whose id is its batch and its place, so it becomes one task, even if its process dies.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TypeVar

import orjson
from django.conf import settings
from msgspec.structs import replace

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_message, task_of
from a2a.errors import (
    Error,
    IdempotencyConflict,
    Internal,
    PermissionDenied,
    RateLimited,
    TaskNotCancelable,
    TaskNotFound,
    Unavailable,
    UnknownAgent,
)
from a2a.events import Event
from a2a.requests import CancelTask, Priority, SendMessage
from a2a.states import INTERRUPTED, TERMINAL
from a2a.types import Message, Part, Role, Task
from tasks_app import clock
from tasks_app.batches import results, rows
from tasks_app.batches.rows import Progress, Turn
from tasks_app.callers.access import sight
from tasks_app.callers.permissions import check_permission
from tasks_app.callers.scopes import CANCEL
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import MAY_PASS, RETRY_SECONDS
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log import Append, ReadHead, ReadTask, change
from tasks_app.event_log.readers import readers
from tasks_app.event_log.rounds import TurnRounds
from tasks_app.exchanges.none import NoExchange
from tasks_app.hints import DueRows, Reached
from tasks_app.limits.accounts import account
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.models import BatchItem
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context
from tasks_app.operations.repeat import find_sent
from tasks_app.operations.tasks import is_shown

log = logging.getLogger(__name__)
R = TypeVar("R")
AT_ONCE = 100
"""Batches that one process goes on with at the same time."""
PAGE = 100
"""Results that are written together."""
NEWS = TERMINAL | INTERRUPTED


class Keeper(TurnRounds[Turn]):
    """The keeper of this process, on the loop of its doors."""

    def __init__(self) -> None:
        super().__init__(DueRows.BATCHES, self.begin_turns)
        self.followers: dict[str, asyncio.Event] = {}
        """The events that the news of a task sets: of batches, and of items at work."""

    def hear(self, news: list[Reached]) -> None:
        """Wake the batches that news are about. Any thread may call it."""
        for item in news if self.followers else ():
            if item.state in NEWS and (event := self.followers.get(item.task_id)):
                self.call(event.set)

    def give_back(self, taken: Sequence[Turn]) -> None:
        rows.release([turn.id for turn in taken])

    async def begin_turns(self) -> None:
        """Begin with the batches that are due, as far as there is room."""
        if (room := AT_ONCE - len(self.turns)) > 0:
            for turn in await ask(partial(rows.take_turns, room, [turn.id for turn in self.turns.values()])):
                self.begin_turn(turn, self._keep(turn))

    async def _keep(self, turn: Turn) -> None:
        """Go on with a batch until it is over, or has given its place to others. Raises nothing but CancelledError.

        A turn ends after the time of a round while all places are taken. Otherwise batches whose items end one after
        the other would keep out those of all other owners.
        """
        event, own, ends = asyncio.Event(), set[str](), monotonic() + settings.A2A_SWEEP_SECONDS
        try:
            while not readers.draining:
                event.clear()
                step = await advance(turn)
                if step is None:
                    return
                for task_id in own - {turn.id, *step.at_work}:
                    self.followers.pop(task_id, None)
                own = {turn.id, *step.at_work}
                self.followers.update(dict.fromkeys(own, event))
                if not step.has_more and not await self._pause(turn, event, step.pause):
                    return
                if monotonic() > ends and len(self.turns) >= AT_ONCE:
                    await ask(partial(rows.give_back, turn.id, 0))
                    return
        except Exception:
            log.exception("batch %s waits for another attempt", turn.id)
        finally:
            for task_id in own:
                self.followers.pop(task_id, None)

    async def _pause(self, turn: Turn, event: asyncio.Event, seconds: float) -> bool:
        """Wait for news, and look without any after a time. Return False if the batch has given its place to others.

        It does so while all places are taken. Otherwise batches whose items wait for answers, or for the limits of
        their owners, would keep out those of all other owners. No keeper hears news of such a batch, so it is due again
        after the time of a round, however long it must wait: its items may end, or it may be canceled.
        """
        rest = seconds or settings.A2A_POLL_SECONDS
        while True:
            part = min(rest, settings.A2A_POLL_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(part):
                    await event.wait()
            rest -= part
            if not event.is_set() and len(self.turns) >= AT_ONCE:
                await ask(partial(rows.give_back, turn.id, min(rest, settings.A2A_SWEEP_SECONDS)))
                return False
            await ask(partial(rows.renew, turn.id))
            if event.is_set() or rest <= 0:
                return True


class Step:
    """The outcome of one step of a batch that goes on."""

    def __init__(self, at_work: set[str], *, has_more: bool, pause: float = 0) -> None:
        self.at_work = at_work
        self.has_more = has_more
        """Whether the next step may come at once."""
        self.pause = pause
        """Seconds to wait at most, after a temporary refusal."""


async def ask(function: Callable[[], R]) -> R:
    """Return the result of a function on the write lane."""
    return await bridge.ask(Do(function), settings.A2A_LEASE_SECONDS)


async def advance(turn: Turn) -> Step | None:
    """Do one step of a batch: note ends, write results, and begin items. Return None if the batch is over."""
    progress = await ask(partial(rows.look, turn.id))
    if progress is None:
        await ask(partial(rows.finish, turn.id))
        return None
    if progress.state in TERMINAL:
        return await _end_items(turn, progress)
    if (more := await _write(turn, progress)) is None:
        return None
    began, pause = await _begin(turn, progress)
    # Items that have begun may end before their news is listened for, so the next step looks once more.
    has_more = more or (bool(began) and not pause)
    return Step({*progress.at_work, *progress.waiting, *began}, has_more=has_more, pause=pause)


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
    tasks = {item.place: task_id for item in items if (task_id := await _find_former(turn, item)) is not None}
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
    outcomes = await asyncio.gather(*(_send(turn, item) for item in items))
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


async def _send(turn: Turn, item: BatchItem) -> str | Error:
    """Make the task of an item, or find the task that a process made before it died. Return its id, or the error."""
    try:
        return await _make_or_find(turn, item)
    except Error as error:
        return error
    except MAY_PASS as error:
        log.warning("%s/%s waits for the database: %s", turn.id, item.place, error)
        return Unavailable(RETRY_SECONDS)
    except Exception as error:  # a fault ends this item alone; logged with its reference
        reference = secrets.token_hex(6)
        log.error("%s/%s failed, reference %s", turn.id, item.place, reference, exc_info=error)
        return Internal(reference=reference)


async def _make_or_find(turn: Turn, item: BatchItem) -> str:
    try:
        check_permission(turn.caller, "operation", turn.operation)
        async with limits.paid(turn.caller, cost_of_send()), _weighed(turn, item) as size:
            request = _request(turn, item, await _message(turn, item))
            answer = await perform(request, Context(caller=turn.caller, exchange=NoExchange(size)))
    except (IdempotencyConflict, PermissionDenied, TaskNotFound, UnknownAgent) as error:
        # A process may have sent this item and died. If the task that it is about has changed since, or is gone, or its
        # caller has lost a permission, the message cannot be sent again as it was. But its id leads to its task.
        may_be_sent = item.about is not None or isinstance(error, PermissionDenied | UnknownAgent)
        if not may_be_sent or (former := await _find_former(turn, item)) is None:
            raise
        return former
    if not isinstance(answer, Answer) or answer.task is None:
        raise TypeError(f"an item that is queued gave {answer!r} in place of a task")
    return answer.task.id


@asynccontextmanager
async def _weighed(turn: Turn, item: BatchItem) -> AsyncIterator[int]:
    """Count the task that an item is about as bytes of its owner for the length of the block, and give their number.

    The message of the item has what that task has given, which may be megabytes, while the call named the task by a few
    bytes, and perhaps many times. Raises RateLimited and Unavailable if the account has no room: the item begins later.
    """
    if item.about is None:
        yield 0
        return
    read = ReadHead(task_id=item.about, sight=sight(turn.caller, item.about))
    head = await bridge.ask(read, settings.A2A_LEASE_SECONDS)
    if head is None or head.size <= LARGE:
        yield 0
        return
    holding = account.hold_body(turn.caller.owner_id, head.size)
    try:
        yield head.size
    finally:
        holding.release()


async def _find_former(turn: Turn, item: BatchItem) -> str | None:
    """Return the task that an item has become already, if any."""
    target = await find_sent(turn.caller.owner_id, _message_id(turn, item), settings.A2A_LEASE_SECONDS)
    return target.task_id if target is not None else None


def _message_id(turn: Turn, item: BatchItem) -> str:
    return f"{turn.id}/{item.place}"


def _request(turn: Turn, item: BatchItem, message: Message) -> SendMessage:
    agent_skills = {"skill": turn.operation} if turn.operation != turn.agent else {}
    return SendMessage(
        message=message,
        return_immediately=True,
        queued=True,
        agent=turn.agent,
        priority=Priority.LOW if turn.optimization == "resources" else Priority.NORMAL,
        metadata={"operation": turn.operation, "batch": turn.id, "index": item.place} | agent_skills,
    )


async def _message(turn: Turn, item: BatchItem) -> Message:
    """Return the message of an item: its own, or one with what its task has given. Raises TaskNotFound."""
    message_id = _message_id(turn, item)
    if item.message is not None:
        return replace(decode_message(orjson.loads(item.message)), message_id=message_id)
    task_id = item.about or ""
    look_up = partial(bridge.ask, patience=settings.A2A_LEASE_SECONDS)
    read = await look_up(ReadTask(task_id=task_id, sight=sight(turn.caller, task_id)))
    # A batch at the address of an agent reads no task of another agent: see caller_of_work().
    if read is None or not await is_shown(look_up, turn.caller, None, task_id, read.agent):
        raise TaskNotFound(taskId=task_id)
    task = task_of(read.document) if read.size <= LARGE else await off_loop(task_of, read.document)
    return Message(
        message_id=message_id,
        role=Role.USER,
        parts=_parts(task),
        context_id=task.context_id,
        reference_task_ids=(task_id,),
    )


def _parts(task: Task) -> tuple[Part, ...]:
    """Return the texts and values that a task has given, or else those that it was sent. Files stay with their task."""
    outputs = [part for artifact in task.artifacts for part in artifact.parts]
    asks = [part for message in task.history if message.role is Role.USER for part in message.parts]
    for parts in (outputs, asks):
        if plain := tuple(part for part in parts if part.raw is None and part.url is None):
            return plain
    return (Part(text=f"Task {task.id}", media_type="text/plain"),)


keeper = Keeper()
"""The keeper of this process."""
