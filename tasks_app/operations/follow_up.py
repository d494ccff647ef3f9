"""The next message of a task. An interrupted task becomes runnable again; a task at work gets it into its inbox."""

from contextlib import nullcontext

from django.conf import settings
from django.db import IntegrityError
from msgspec.structs import replace

from a2a.agents import registry
from a2a.errors import Error, InvalidParams, TaskNotFound, Unavailable, UnsupportedOperation
from a2a.events import MessageAdded
from a2a.preferences import Preferences
from a2a.requests import SendMessage, StreamMessage
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Message, Status
from tasks_app import clock
from tasks_app.batches.rows import BATCH_AGENT
from tasks_app.callers.access import for_agents, sight
from tasks_app.database.rows import KeyRow, WebhookRow
from tasks_app.event_log import Append, FindKey, Full, Head, ReadTask, change
from tasks_app.limits.accounts import account
from tasks_app.limits.quotas import quota
from tasks_app.operations.admission import charge_again
from tasks_app.operations.attachments import Attachments
from tasks_app.operations.choose_agent import check_agent_of
from tasks_app.operations.fitness import fit
from tasks_app.operations.large import compute
from tasks_app.operations.operation import Context, Follow, Grant
from tasks_app.operations.plan import with_ids
from tasks_app.operations.registration import check_address, check_room, webhook_row
from tasks_app.operations.repeat import answer_or_wait, fingerprint, key_of, repeat
from tasks_app.operations.tasks import append_with_record, check_growth, document_as_of, end_error, find
from tasks_app.run_secrets import row_of


async def follow_up(request: SendMessage, context: Context, task_id: str) -> Grant:
    """Add the message to its task, and try again whenever another event was written since the task was read."""
    attachments = Attachments()
    try:
        while (grant := await _add(request, context, task_id, attachments)) is None:
            pass
    except Error as error:
        # An unavailable database may have stored the message all the same.
        if not isinstance(error, Unavailable):
            await attachments.drop()
        raise
    return grant


async def _add(request: SendMessage, context: Context, task_id: str, attachments: Attachments) -> Grant | None:
    """Add the message to the task as it is now. Return None if it has changed meanwhile."""
    caller, key = context.caller, key_of(request.message.message_id)
    head = await find(context, task_id, request.tenant)
    if head.agent == BATCH_AGENT:
        raise UnsupportedOperation(taskId=task_id, detail="the task is a batch, which takes no messages")
    check_agent_of(head, request, caller)
    preferences = _preferences(request, context, head)
    message = with_ids(request.message, task_id, head.context_id)
    digest = await compute(context, fingerprint, message, None)
    target = await FindKey(owner_id=caller.owner_id, key=key)
    if target is not None:
        await attachments.drop()
        return await repeat(request, context, target, digest)
    if TaskState(head.state) in TERMINAL:
        raise end_error(head, TaskState.SUBMITTED)
    check_growth(head)
    context.reserve(head.size)
    quota.check(caller.owner_id)
    await charge_again(request, head, registry.get(head.agent))
    webhook = await _webhook(request, context, task_id)
    # The answer to a question makes the task runnable, so it counts as new work.
    is_new_work = TaskState(head.state) in INTERRUPTED
    with account.new_work(caller.owner_id, head.agent) if is_new_work else nullcontext():
        storage = await attachments.store(message, task_id)
        item = await compute(context, _addition, context, head, replace(message, parts=storage.parts), key, digest)
        item.wants, item.files = preferences.json(), storage.rows
        item.secret = row_of(task_id, message.message_id, context.secrets)
        item.webhook, item.with_deliveries = webhook, webhook is not None
        check_growth(head, item.size)
        try:
            outcome = await append_with_record(context, item)
        except (IntegrityError, Full):
            # Another call has stored this very message, or the last webhook that the task has room for. The next round
            # finds it.
            context.exchange.undo()
            return None
    return await _answer(request, context, task_id, outcome.seq) if outcome else None


def _preferences(request: SendMessage, context: Context, head: Head) -> Preferences:
    """Return the caller's preferences, checked against the task's agent.

    Raises InvalidParams for a context that is not the task's, and the errors of `fit`.
    """
    agent = registry.get(head.agent)
    preferences = fit(request, agent, context) if agent else Preferences(caller=for_agents(context.caller))
    if request.message.context_id is not None and request.message.context_id != head.context_id:
        raise InvalidParams(("message.contextId", "is not the context of the task; leave it out"))
    return preferences


def _addition(context: Context, head: Head, message: Message, key: str, digest: str) -> Append:
    """Return the message as an event of the task. If the task is interrupted, the event makes it runnable."""
    caller, state, now = context.caller, TaskState(head.state), clock.now()
    status = Status(state=TaskState.SUBMITTED, timestamp=now) if state in INTERRUPTED else None
    item = change(
        head.task_id,
        head.context_id,
        [MessageAdded(message=message, status=status)],
        now=now,
        actor=context.actor,
        sight=sight(caller, head.task_id),
        attempts=-head.attempt if status else 0,
        owner_id=caller.owner_id,
        key=KeyRow(
            owner_id=caller.owner_id,
            key=key,
            fingerprint=digest,
            task_id=head.task_id,
            turn_id=None,
            created_at=now,
        ),
    )
    item.sources = [state.value]
    # The write checks the limits again, because many messages may come at once.
    item.most_size, item.most_messages = settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_MESSAGES
    return item


async def _webhook(request: SendMessage, context: Context, task_id: str) -> WebhookRow | None:
    """Return the row of the webhook that came with the message, if any. Raises InvalidParams."""
    if request.push_config is None:
        return None
    await check_address(request.push_config)
    row = webhook_row(request.push_config, task_id, clock.now(), context.caller)
    await check_room(request.push_config, row, context.caller)
    return row


async def _answer(request: SendMessage, context: Context, task_id: str, seq: int) -> Grant:
    """Answer a message that was appended as that event. Raises TaskNotFound if the task was deleted since."""
    read = await ReadTask(task_id=task_id, sight=None, history=request.history_length != 0, is_owed=True)
    if read is None:
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, read.document.context_id, read.document.seq)
    if not isinstance(request, StreamMessage):
        return answer_or_wait(request, read)
    first = await document_as_of(context.caller, task_id, read.document.context_id, seq, is_owed=True)
    return Follow(first=first or read.document, history_length=request.history_length)
