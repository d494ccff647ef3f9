"""The operations on tasks: get, list, cancel and subscribe; and what other operations share of them."""

from functools import partial

from django.conf import settings
from msgspec.structs import replace

from a2a.answers import Answer
from a2a.documents import TaskDocument
from a2a.errors import TaskEnded, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a.events import StatusChanged
from a2a.requests import CancelTask, FollowTask, GetTask, ListTasks, SubscribeToTask
from a2a.states import TERMINAL, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.batches.rows import BATCH_AGENT, FindAgent
from tasks_app.callers.access import Caller, check_tenant, sight
from tasks_app.callers.permissions import may_see, shows
from tasks_app.database.work import DoAlone, DoOwed, DoSlowly
from tasks_app.event_log import (
    Append,
    Appended,
    Head,
    Long,
    ReadAsOf,
    ReadHead,
    ReadTask,
    change,
    read_as_of,
    record,
    seq_after_questions,
)
from tasks_app.operations.operation import Ask, Context, Done, Follow, Grant, directly
from tasks_app.operations.pages import Draft, begin_page


async def is_shown(ask: Ask, caller: Caller, address: str | None, task_id: str, agent: str) -> bool:
    """Return whether an address shows the caller's task of an agent. A batch counts as a task of its items' agent."""
    if agent == BATCH_AGENT:
        agent = await ask(FindAgent(task_id))
    return shows(caller, address, agent)


async def find(context: Context, task_id: str, tenant: str | None) -> Head:
    """Return the head of the caller's task.

    Raises TaskNotFound for a task that is missing, of another owner, or of another agent than that of the address.
    """
    context.exchange.about(task_id)
    check_tenant(context.caller, tenant, task_id)
    head = await ReadHead(task_id=task_id, sight=sight(context.caller, task_id))
    if head is None or not await is_shown(directly, context.caller, context.agent, task_id, head.agent):
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, head.context_id, head.seq)
    return head


async def read_whole(context: Context, task_id: str, *, history: bool = True, is_owed: bool = False) -> TaskDocument:
    """Return the caller's task with its artifacts and, unless told otherwise, its history; `is_owed` as in ReadTask.

    Raises TaskNotFound as `find` does.
    """
    read = await ReadTask(task_id=task_id, sight=sight(context.caller, task_id), history=history, is_owed=is_owed)
    if read is None or not await is_shown(directly, context.caller, context.agent, task_id, read.agent):
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, read.document.context_id, read.document.seq)
    return read.document


async def document_as_of(
    caller: Caller, task_id: str, context_id: str, seq: int, *, is_owed: bool = False
) -> TaskDocument | None:
    """Return the task as of an event, or None if it was deleted. A log that takes long to fold is read alone, in the
    turn of the caller; `is_owed` is true for the answer to a change."""
    item, kind = ReadAsOf(task_id=task_id, context_id=context_id, seq=seq), DoOwed if is_owed else DoSlowly
    document = await item
    return await kind(lambda: read_as_of(item), caller.owner_id) if isinstance(document, Long) else document


async def append_with_record(context: Context, item: Append) -> Appended | None:
    """Append a caller's events together with the record of the call, or with the acts of an operator.

    Return None if the task has changed since the operation read it. The operation then reads it again.
    """
    record(item, *context.exchange.halves(None))
    item.entry = context.exchange.entry()
    item.acts = list(context.acts)
    outcome = await item
    context.exchange.confirm(item.exchange)
    if isinstance(outcome, Appended):
        return outcome
    context.exchange.undo()
    return None


def end_error(head: Head, target: TaskState | None = None) -> TaskEnded:
    """Return the error for a request that needs a task which has not ended, or would set its state to the target."""
    facts = {"current": head.state, "target": target.value} if target else {}
    return TaskEnded(taskId=head.task_id, detail=f"the task has ended: it is {head.state}", **facts)


def check_growth(head: Head, size: int = 1) -> None:
    """Check that the task may grow by a message of that size. Raises UnsupportedOperation."""
    limits = (
        ("messages", head.messages + 1, settings.A2A_TASK_MESSAGES),
        ("events", head.seq + 1, settings.A2A_TASK_EVENTS),
        ("characters", head.size + size, settings.A2A_TASK_CHARACTERS),
    )
    for noun, number, most in limits:
        if number > most:
            detail = f"a task may have {most:,} {noun}, and with this message it would have {number:,}: begin another"
            raise UnsupportedOperation(taskId=head.task_id, detail=detail)


async def get(request: GetTask, context: Context) -> Grant:
    """Return a task (A2A 1.0, 3.1.3)."""
    context.exchange.about(request.id)
    check_tenant(context.caller, request.tenant, request.id)
    document = await read_whole(context, request.id, history=request.history_length != 0)
    if not request.include_artifacts:
        document = replace(document, artifacts=None)
    return Done(Answer(task=document, history_length=request.history_length))


async def list_tasks(request: ListTasks, context: Context) -> Grant:
    """Return a page of the caller's tasks (A2A 1.0, 3.1.4)."""
    check_tenant(context.caller, request.tenant)
    owner = context.caller.owner_id
    # No agent has the empty name, so the list at the address of an agent that the caller may not use is empty.
    agent = context.agent if context.agent is None or may_see(context.caller, context.agent) else ""
    key = (request, context.caller.tenant_id, agent)
    page = await DoSlowly(lambda: begin_page(request, context.caller, agent), owner, key)
    return Done(await DoAlone(page.finish, owner, id(page)) if isinstance(page, Draft) else page)


async def cancel(request: CancelTask, context: Context) -> Grant:
    """Cancel a task (A2A 1.0, 3.1.5).

    The row decides: of a cancellation and a completion, the first commit wins. The worker hears of it by a hint.
    """
    while True:
        head = await find(context, request.id, request.tenant)
        context.reserve(head.size)
        if request.repeatable and head.state == TaskState.CANCELED.value:
            return Done(Answer(task=await read_whole(context, request.id)))
        if TaskState(head.state) in TERMINAL:
            raise TaskNotCancelable(taskId=request.id, current=head.state, target=TaskState.CANCELED.value)
        now = clock.now()
        event = StatusChanged(status=Status(state=TaskState.CANCELED, timestamp=now))
        item = change(
            request.id,
            head.context_id,
            [event],
            now=now,
            actor=context.actor,
            sight=sight(context.caller, request.id),
        )
        if await append_with_record(context, item):
            return Done(Answer(task=await read_whole(context, request.id, is_owed=True)))


async def subscribe(request: SubscribeToTask, context: Context) -> Grant:
    """Follow a task (A2A 1.0, 3.1.6). The first frame is the task as of now, or as of the event of a Last-Event-ID."""
    head = await find(context, request.id, request.tenant)
    after = request.after or 0
    if TaskState(head.state) in TERMINAL and not (request.closes or request.shows_end or 0 < after < head.seq):
        raise end_error(head)
    if request.closes and 0 < after < head.seq:
        # A question that was answered would end the stream, and its client would miss all that follows.
        after = await DoSlowly(partial(seq_after_questions, head.task_id, after), context.caller.owner_id)
    if 0 < after <= head.seq:
        # Even if the cursor is at the last event: an event that is written meanwhile gets a frame of its own.
        first = await document_as_of(context.caller, head.task_id, head.context_id, after)
        if first is None:
            raise TaskNotFound(taskId=request.id)
    else:
        first = await read_whole(context, request.id)
    # 0.x calls a question final: a subscription ends with it, as the stream of a send does
    # (docs/protocol.md#following-a-task).
    notices = request.notices if isinstance(request, FollowTask) else None
    return Follow(first=first, stays=not request.closes, notices=notices)
