"""Items of batches: how each becomes one task.

An item is sent as a message whose id is its batch and its place, so it becomes one task, even if its process dies.
"""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import orjson
from django.conf import settings
from msgspec.structs import replace

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_message, task_of
from a2a.errors import Error, IdempotencyConflict, Internal, PermissionDenied, TaskNotFound, Unavailable, UnknownAgent
from a2a.requests import Priority, SendMessage
from a2a.types import Message, Part, Role, Task
from tasks_app.batches.rows import Turn
from tasks_app.callers.access import sight
from tasks_app.callers.permissions import check_permission
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import MAY_PASS, RETRY_SECONDS
from tasks_app.event_log import ReadHead, ReadTask
from tasks_app.exchanges.none import NoExchange
from tasks_app.limits.accounts import account
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.models import BatchItem
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context
from tasks_app.operations.repeat import find_sent
from tasks_app.operations.tasks import is_shown

log = logging.getLogger(__name__)


async def send_item(turn: Turn, item: BatchItem) -> str | Error:
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


async def find_former(turn: Turn, item: BatchItem) -> str | None:
    """Return the task that an item has become already, if any."""
    target = await find_sent(turn.caller.owner_id, _message_id(turn, item), settings.A2A_LEASE_SECONDS)
    return target.task_id if target is not None else None


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
        if not may_be_sent or (former := await find_former(turn, item)) is None:
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
