"""The operation that begins a batch: it stores the batch, its items and its task, and answers with the task."""

from datetime import datetime

from django.conf import settings
from msgspec.structs import replace

from a2a.agents import Agent, registry
from a2a.answers import Answer
from a2a.batches import BatchInput, ExecuteBatch
from a2a.dialects.json.json_1_0 import document, dumps, encode_message, event_document
from a2a.documents import TaskDocument
from a2a.errors import Error, InvalidParams, Unavailable, UnknownAgent, UnsupportedOperation
from a2a.events import Event, StatusChanged, TaskCreated, fold
from a2a.preferences import Preferences
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status, Task
from tasks_app import clock
from tasks_app.batches.rows import BATCH_AGENT, Begin
from tasks_app.callers.access import check_right, check_tenant, for_agents
from tasks_app.callers.permissions import check_permission
from tasks_app.callers.scopes import READ
from tasks_app.database.rows import KeyRow, TaskRow
from tasks_app.event_log import Create, FindKey, event_row
from tasks_app.hints import DueRows, hints
from tasks_app.ids import own_context, uuid7
from tasks_app.limits.accounts import account
from tasks_app.limits.quotas import quota
from tasks_app.models import Batch, BatchItem
from tasks_app.operations.attachments import check_references
from tasks_app.operations.choose_agent import address_agent, find_by_name
from tasks_app.operations.operation import Context, Done, Grant

MAX_OPERATION = 128
"""Characters of the name of an operation."""
USUAL = 10
"""Items at work at the same time, and items that begin together, unless the caller says so."""
MAX_ID = 64
"""Characters of the id of a task that an item names. Ids are shorter, and unknown ones fail their item."""


async def execute(request: ExecuteBatch, context: Context) -> Grant:
    """Begin a batch, and answer with its task. The keeper of any process goes on with it from then on."""
    check_tenant(context.caller, request.tenant)
    request = replace(
        request,
        max_concurrent=_or_usual(request.max_concurrent, settings.A2A_BATCH_CONCURRENT),
        batch_size=_or_usual(request.batch_size, settings.A2A_BATCH_ITEMS),
    )
    _check(request)
    check_permission(context.caller, "operation", request.operation)
    if any(item.task_id for item in request.items):
        check_right(context.caller, READ, context.spelling)
    batch = _batch(uuid7(), request, context)
    create, task = _task(request, context, batch.id)
    items = [_item(batch.id, place, one) for place, one in enumerate(request.items)]
    context.exchange.about(batch.id, task.context_id, task.seq)
    context.exchange.about_agent(batch.agent)
    create.entry = context.exchange.entry()
    try:
        await _begin(Begin(batch=batch, items=items, create=create))
    except Error:
        context.exchange.undo()
        raise
    hints.due(DueRows.BATCHES)
    return Done(Answer(task=task))


async def _begin(item: Begin) -> None:
    """Store a batch. Raises RateLimited, of which QuotaReached is one, and Unavailable."""
    owner_id = item.batch.owner_id
    try:
        quota.check(owner_id)
        with account.new_work(owner_id, BATCH_AGENT):
            await item
    except Unavailable:
        # An unavailable database may have stored the batch all the same.
        if await FindKey(owner_id=owner_id, key=item.batch.pk) is None:
            raise


def _or_usual(number: int | None, most: int) -> int:
    return min(USUAL, most) if number is None else number


def _check(request: ExecuteBatch) -> None:
    """Check all that needs no database. Raises InvalidParams and UnsupportedOperation."""
    if not settings.A2A_KEY_HOURS:
        raise UnsupportedOperation(detail="batches need message ids that are kept: A2A_KEY_HOURS is 0")
    if not 1 <= len(request.operation) <= MAX_OPERATION:
        raise InvalidParams(("operation", f"must have 1 to {MAX_OPERATION} characters"))
    if not 1 <= len(request.items) <= settings.A2A_BATCH_ITEMS:
        raise InvalidParams(
            ("tasks", f"must have 1 to {settings.A2A_BATCH_ITEMS:,} entries, not {len(request.items):,}")
        )
    most = settings.A2A_BATCH_CONCURRENT
    if not 1 <= (request.max_concurrent or 0) <= most:
        raise InvalidParams(("configuration.maxConcurrent", f"must be from 1 to {most}"))
    if not 1 <= (request.batch_size or 0) <= settings.A2A_BATCH_ITEMS:
        raise InvalidParams(("configuration.batchSize", f"must be from 1 to {settings.A2A_BATCH_ITEMS}"))
    for place, item in enumerate(request.items):
        _check_item(f"tasks[{place}]", item)


def _check_item(field: str, item: BatchInput) -> None:
    if item.message is not None:
        if item.message.role is not Role.USER or item.message.task_id is not None:
            raise InvalidParams((field, "must be a new message of the user, without a taskId"))
        check_references(item.message)
    elif not item.task_id or len(item.task_id) > MAX_ID or "\0" in item.task_id:
        raise InvalidParams((field, f"must be the id of a task, of {MAX_ID} characters at most, or a message"))


def _agent(request: ExecuteBatch, context: Context) -> Agent:
    """Return the agent of the operation. At the address of an agent, every operation goes to that agent."""
    if context.agent is not None:
        return address_agent(context)
    agent = find_by_name(context.caller, request.operation)
    if agent is None:
        raise UnknownAgent(operation=request.operation[:64])
    return registry.get(agent.name) or agent


def _batch(batch_id: str, request: ExecuteBatch, context: Context) -> Batch:
    return Batch(
        id=batch_id,
        tenant_id=context.caller.tenant_id,
        owner_id=context.caller.owner_id,
        operation=request.operation,
        agent=_agent(request, context).name,
        address=context.agent,
        scopes=" ".join(sorted(context.caller.scopes)),
        size=len(request.items),
        max_concurrent=request.max_concurrent or USUAL,
        batch_size=request.batch_size or USUAL,
        optimization=request.optimization,
        due_at=clock.now(),
        created_at=clock.now(),
    )


def _item(batch_id: str, place: int, item: BatchInput) -> BatchItem:
    message = dumps(encode_message(item.message)) if item.message else None
    return BatchItem(batch_id=batch_id, place=place, about=item.task_id, message=message)


def _beginning(request: ExecuteBatch, batch_id: str, now: datetime) -> list[Event]:
    """Return the first events of the task of a batch, which is working from the first."""
    asks = {"operation": request.operation, "items": len(request.items), "maxConcurrent": request.max_concurrent}
    context_id = own_context(batch_id)
    message = Message(
        message_id=batch_id,
        role=Role.USER,
        parts=(Part(data=asks, media_type="application/json"),),
        task_id=batch_id,
        context_id=context_id,
    )
    submitted = Status(state=TaskState.SUBMITTED, timestamp=now)
    metadata = (request.metadata or {}) | {"batchProcessing": True, "operation": request.operation}
    first = Task(id=batch_id, context_id=context_id, status=submitted, history=(message,), metadata=metadata)
    return [TaskCreated(task=first), StatusChanged(status=Status(state=TaskState.WORKING, timestamp=now))]


def _task(request: ExecuteBatch, context: Context, batch_id: str) -> tuple[Create, TaskDocument]:
    """Return the work item that stores the task of a batch, and its document."""
    caller, now = context.caller, clock.now()
    events = _beginning(request, batch_id, now)
    final = document(fold(None, events), len(events), BATCH_AGENT)
    rows = [
        event_row(
            event_document(event, task_id=batch_id, context_id=final.context_id, seq=seq),
            now=now,
            actor=context.actor if seq == 1 else "keeper",
        )
        for seq, event in enumerate(events, 1)
    ]
    task = TaskRow(
        id=batch_id,
        tenant_id=caller.tenant_id,
        owner_id=caller.owner_id,
        context_id=final.context_id,
        agent=BATCH_AGENT,
        state=final.state,
        status=final.status,
        status_at=now,
        last_seq=final.seq,
        metadata=final.metadata,
        snapshot_seq=final.seq,
        joined_seq=final.seq,
        snapshot_status=final.status,
        artifacts=final.artifacts or "[]",
        history=final.history or "[]",
        queue="default",
        priority=0,
        timeout=0,
        max_attempts=1,
        created_at=now,
        wants=Preferences(caller=for_agents(caller)).json(),
        size=sum(row.size for row in rows),
        messages=1,
    )
    key = KeyRow(owner_id=caller.owner_id, key=batch_id, fingerprint="", task_id=batch_id, turn_id=None, created_at=now)
    return Create(key=key, task=task, events=rows), final
