"""The next message of a task: an interrupted one becomes runnable again, a working one gets it into its inbox."""

from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.db import IntegrityError
from msgspec.structs import replace

from a2a.agents import registry
from a2a.errors import InvalidParams, TaskNotFound
from a2a.events import MessageAdded
from a2a.requests import SendMessage, StreamMessage
from a2a.run import Preferences
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Message, Status
from tasks_app import clock
from tasks_app.callers.access import for_agents, sight
from tasks_app.callers.accounts import account
from tasks_app.database.rows import KeyRow, WebhookRow
from tasks_app.event_log import Append, FindKey, Full, Head, ReadTask, change
from tasks_app.files import StoredParts
from tasks_app.operations.attachments import drop_files, store_parts
from tasks_app.operations.creation import with_ids
from tasks_app.operations.fitness import fit
from tasks_app.operations.operation import Context, Follow, Grant
from tasks_app.operations.registration import check_address, check_room, webhook_row
from tasks_app.operations.repeat import fingerprint, key_of, repeat, wait_or_done
from tasks_app.operations.tasks import append_recorded, as_of, check_growth, ended, find


async def follow_up(request: SendMessage, context: Context, task_id: str) -> Grant:
    """Add the message to its task, as often as another event comes between the look at the task and the write."""
    caller, message = context.caller, request.message
    key = key_of(message.message_id)
    kept: StoredParts | None = None
    while True:
        head = await find(context, task_id, request.tenant)
        preferences = _preferences(request, context, head)
        placed = with_ids(message, task_id, head.context_id)
        print_of = fingerprint(placed, None)
        known = await FindKey(owner_id=caller.owner_id, key=key)
        if known is not None:
            await drop_files(kept)
            return await repeat(request, context, known, print_of)
        if TaskState(head.state) in TERMINAL:
            raise ended(head)
        check_growth(head)
        webhook = await _webhook(request, context, task_id)
        kept = kept or await store_parts(message, task_id)
        item = _addition(
            context, head, replace(placed, parts=kept.parts), key, print_of,
            wants=preferences.json(), files=kept.rows, webhook=webhook, with_deliveries=webhook is not None,
        )  # fmt: skip
        check_growth(head, item.size)
        try:
            # An answer to a question is work again.
            with account.new_work(caller.owner_id, head.agent) if item.state else nullcontext():
                appended = await append_recorded(context, item)
        except (IntegrityError, Full):
            # The same message in another call, or the last webhook that there was room for: found next time round.
            context.exchange.undo()
            continue
        if appended:
            return await _answer(request, context, task_id, appended.seq)


def _preferences(request: SendMessage, context: Context, head: Head) -> Preferences:
    """Return what the caller prefers of the task's agent. Raises InvalidParams for a context that is not the task's."""
    agent = registry.get(head.agent)
    preferences = fit(request, agent, context) if agent else Preferences(caller=for_agents(context.caller))
    if request.message.context_id is not None and request.message.context_id != head.context_id:
        raise InvalidParams(("message.contextId", "is not the context of the task"))
    return preferences


def _addition(context: Context, head: Head, message: Message, key: str, print_of: str, **more: Any) -> Append:
    """Return the message as an event of the task, which becomes runnable by it if it waited; further arguments are
    those of Append."""
    caller, state, now = context.caller, TaskState(head.state), clock.now()
    status = Status(state=TaskState.SUBMITTED, timestamp=now) if state in INTERRUPTED else None
    item = change(
        head.task_id, head.context_id, [MessageAdded(message=message, status=status)], now=now, actor=context.actor,
        sight=sight(caller, head.task_id), attempts=-head.attempt if status else 0,
        key=KeyRow(
            owner_id=caller.owner_id, key=key, fingerprint=print_of, task_id=head.task_id, turn_id=None, created_at=now
        ),
        **more,
    )  # fmt: skip
    item.sources = [state.value]
    # Looked at again where it is stored: many messages may come at once.
    item.most_size, item.most_messages = settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_MESSAGES
    return item


async def _webhook(request: SendMessage, context: Context, task_id: str) -> WebhookRow | None:
    """Return the row of the webhook that comes with a message to a task that exists, if one does."""
    if request.push_config is None:
        return None
    await check_address(request.push_config)
    row = webhook_row(request.push_config, task_id, clock.now(), context.caller.key_id)
    await check_room(request.push_config, row)
    return row


async def _answer(request: SendMessage, context: Context, task_id: str, seq: int) -> Grant:
    """Answer a message that was appended as that event. Raises TaskNotFound for a task that was forgotten since."""
    read = await ReadTask(task_id=task_id, sight=None, history=request.history_length != 0, is_owed=True)
    if read is None:
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, read.document.context_id, read.document.seq)
    if not isinstance(request, StreamMessage):
        return wait_or_done(request, read)
    first = await as_of(task_id, read.document.context_id, seq)
    return Follow(first=first or read.document, history_length=request.history_length)
