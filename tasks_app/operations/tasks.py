"""Get, list, cancel, subscribe."""

from django.conf import settings

from a2a.answers import Answer
from a2a.documents import TaskDocument
from a2a.errors import TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a.events import StatusChanged
from a2a.requests import CancelTask, GetTask, ListTasks, SubscribeToTask
from a2a.states import TERMINAL, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.callers.access import check_tenant, sight
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Append, Appended, Head, Long, ReadAsOf, ReadHead, ReadTask, change, read_as_of, record
from tasks_app.operations.operation import Context, Done, Follow, Grant
from tasks_app.operations.pages import page_of


async def find(context: Context, task_id: str, tenant: str | None) -> Head:
    """Return the head of the caller's task. Raises TaskNotFound for one that is missing, foreign, or of another agent
    than the address names."""
    context.exchange.about(task_id)
    check_tenant(context.caller, tenant, task_id)
    head = await ReadHead(task_id=task_id, sight=sight(context.caller, task_id))
    if head is None or (context.agent is not None and head.agent != context.agent):
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, head.context_id, head.seq)
    return head


async def read_whole(context: Context, task_id: str, *, history: bool = True, is_owed: bool = False) -> TaskDocument:
    """Return the caller's task with all it holds, but for a history that is not wanted; `is_owed` as in ReadTask.

    Raises TaskNotFound.
    """
    wish = ReadTask(task_id=task_id, sight=sight(context.caller, task_id), history=history, is_owed=is_owed)
    read = await wish
    if read is None or (context.agent is not None and read.agent != context.agent):
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, read.document.context_id, read.document.seq)
    return read.document


async def as_of(task_id: str, context_id: str, seq: int) -> TaskDocument | None:
    """Return the task after that event, or None: beside other reads, or by itself when there is much to fold."""
    item = ReadAsOf(task_id=task_id, context_id=context_id, seq=seq)
    document = await item
    return await DoSlowly(lambda: read_as_of(item)) if isinstance(document, Long) else document


async def append_recorded(context: Context, item: Append) -> Appended | None:
    """Append a caller's events together with the record of the call; None if the task has changed since the caller's
    look at it, which is then to be repeated."""
    record(item, *context.exchange.halves(None))
    appended = await item
    context.exchange.confirm(item.exchange)
    if isinstance(appended, Appended):
        return appended
    context.exchange.undo()
    return None


def ended(head: Head) -> UnsupportedOperation:
    """Return the refusal of a request that a task which has ended cannot grant."""
    return UnsupportedOperation(taskId=head.task_id, detail=f"the task has ended: it is {head.state}")


def check_growth(head: Head, size: int = 1) -> None:
    """Raises UnsupportedOperation when a task may not grow by a message of that size."""
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
    """A2A 1.0, 3.1.3."""
    context.exchange.about(request.id)
    check_tenant(context.caller, request.tenant, request.id)
    document = await read_whole(context, request.id, history=request.history_length != 0)
    return Done(Answer(task=document, history_length=request.history_length))


async def list_tasks(request: ListTasks, context: Context) -> Grant:
    """A2A 1.0, 3.1.4."""
    check_tenant(context.caller, request.tenant)
    page = await DoSlowly(lambda: page_of(request, context.caller, context.agent), context.caller.owner_id)
    return Done(page)


async def cancel(request: CancelTask, context: Context) -> Grant:
    """A2A 1.0, 3.1.5. The row first, so that whoever commits first has won; the worker hears of it by hint."""
    while True:
        head = await find(context, request.id, request.tenant)
        if TaskState(head.state) in TERMINAL:
            raise TaskNotCancelable(taskId=request.id)
        now = clock.now()
        event = StatusChanged(status=Status(state=TaskState.CANCELED, timestamp=now))
        seen = sight(context.caller, request.id)
        item = change(request.id, head.context_id, [event], now=now, actor=context.actor, sight=seen)
        if await append_recorded(context, item):
            return Done(Answer(task=await read_whole(context, request.id, is_owed=True)))


async def subscribe(request: SubscribeToTask, context: Context) -> Grant:
    """A2A 1.0, 3.1.6. The first frame is the task as of the cursor: now, or where a Last-Event-ID left off."""
    head = await find(context, request.id, request.tenant)
    after = request.after or 0
    if TaskState(head.state) in TERMINAL and not (request.closes or 0 < after < head.seq):
        raise ended(head)
    if 0 < after <= head.seq:
        # At the head too: an event that is written by now is still to be told by itself.
        first = await as_of(head.task_id, head.context_id, after)
        if first is None:
            raise TaskNotFound(taskId=request.id)
    else:
        first = await read_whole(context, request.id)
    # 0.x calls a question final: a subscription ends with it, as the stream of a send does
    # (docs/protocol.md#following-a-task).
    return Follow(first=first, stays=not request.closes)
