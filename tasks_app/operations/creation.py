"""Storing what a message made: the rows of a new task or of a direct reply, with the exchange, in one group."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from a2a.agents import Agent
from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import document, dumps, encode_message, event_document
from a2a.documents import TaskDocument
from a2a.events import Event, TaskCreated, apply, fold, status_of
from a2a.requests import SendMessage, StreamMessage
from a2a.run import Preferences, Run
from a2a.states import TaskState
from a2a.types import Message, PushConfig, Status, Task
from tasks_app.database.rows import DirectReplyRow, EventRow, FileRow, KeyRow, RunRow, TaskRow
from tasks_app.event_log import Create, KeyTarget, deliveries
from tasks_app.ids import uuid7
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations.operation import Await, Context
from tasks_app.operations.registration import webhook_row


class Plan(Struct, kw_only=True):
    """Everything known about a new conversation before it is stored."""

    agent: Agent
    request: SendMessage
    context: Context
    run: Run
    key: KeyRow
    now: datetime
    preferences: Preferences
    quick: bool
    """The agent runs inside the call."""
    files: list[FileRow] = []
    """Files of the message, and of the answer of a quick agent."""
    created: TaskDocument | None = None
    """The task as of its first event, which a stream begins with."""


def with_ids(message: Message, task_id: str, context_id: str) -> Message:
    """Return the message with the ids of the task it belongs to."""
    return Message(
        message_id=message.message_id, role=message.role, parts=message.parts, context_id=context_id, task_id=task_id,
        metadata=message.metadata, extensions=message.extensions, reference_task_ids=message.reference_task_ids,
    )  # fmt: skip


async def create_task(plan: Plan, later: Sequence[Event], failure: RunRow | None = None) -> Answer | KeyTarget:
    """Store the task with its first event and these later ones; return the answer, or the KeyTarget of a
    message that is not new."""
    run, context = plan.run, plan.context
    task = Task(
        id=run.task_id, context_id=run.context_id, status=Status(state=TaskState.SUBMITTED, timestamp=plan.now),
        history=(run.message,), metadata=plan.request.metadata,
    )  # fmt: skip
    events: list[Event] = [TaskCreated(task=task), *later]
    task = fold(task, later)
    final = document(task, len(events))
    answer = Answer(task=final, history_length=plan.request.history_length)
    context.exchange.about(task.id, task.context_id, final.seq)
    # A waiting or streaming call of a queued agent is answered later; all others are answered by this.
    answered = (plan.quick or plan.request.return_immediately) and not isinstance(plan.request, StreamMessage)
    exchange, body = context.exchange.halves(answer if answered else None)
    rows = [_event_row(plan, place, event, exchange.id if exchange else None) for place, event in enumerate(events, 1)]
    row = _task_row(plan, final, task.status.timestamp)
    row.size, row.messages = sum(event.size for event in rows), 1
    item = Create(
        key=plan.key, task=row, events=rows, run=failure,
        exchange=exchange, body=body, files=_held(plan, run.task_id),
    )  # fmt: skip
    if plan.request.push_config:
        _push(plan.request.push_config, item, plan)
    known = await item
    if isinstance(plan.request, StreamMessage):
        plan.created = document(apply(None, events[0]), 1) if later else final
    return _stored(context, item, known, answer)


def _push(config: PushConfig, item: Create, plan: Plan) -> None:
    """Adds the webhook that came with the message, and the deliveries of what has happened already."""
    item.webhook = webhook_row(config, plan.run.task_id, plan.now, plan.context.caller.key_id)
    item.deliveries = deliveries(item.webhook.id, config.language, item.events, plan.now)
    if item.deliveries:
        item.webhook.due_at = plan.now
    if item.task:
        item.task.pushes = True


async def create_reply(plan: Plan, reply: Message) -> Answer | KeyTarget:
    """Store a direct reply and what it answers; return the answer, or KeyTarget if the message is not new."""
    context, reply_id = plan.context, uuid7()
    plan.key.task_id, plan.key.turn_id = None, reply_id
    answer = Answer(message=reply)
    context.exchange.about(None, plan.run.context_id)
    exchange, body = context.exchange.halves(None if isinstance(plan.request, StreamMessage) else answer)
    if (whole := context.exchange.answer) is not None:
        keep = partial(context.exchange.keep, whole)
        if len(whole) > LARGE:
            await Await(lambda: off_loop(keep))
        else:
            keep()
    item = Create(
        key=plan.key, exchange=exchange, body=body, files=_held(plan, reply_id),
        reply=DirectReplyRow(
            id=reply_id, owner_id=context.caller.owner_id, context_id=plan.run.context_id, created_at=plan.now,
            message=dumps(encode_message(plan.request.message)), reply=dumps(encode_message(reply)),
        ),
    )  # fmt: skip
    known = await item
    return _stored(context, item, known, answer)


def _held(plan: Plan, holder: str) -> list[FileRow]:
    """The files, which now belong to something."""
    for file in plan.files:
        file.holder = holder
    return plan.files


def _stored(context: Context, item: Create, known: KeyTarget | None, answer: Answer) -> Answer | KeyTarget:
    # The rows of a message that is not new were left out, the exchange with them.
    context.exchange.confirm(item.exchange if known is None else None)
    return answer if known is None else known


def _task_row(plan: Plan, final: TaskDocument, status_at: datetime) -> TaskRow:
    caller, agent = plan.context.caller, plan.agent
    # A quick agent has answered: it is called again only with another message.
    preferences = replace(plan.preferences, caller=None) if plan.quick else plan.preferences
    return TaskRow(
        id=final.id, tenant_id=caller.tenant_id, owner_id=caller.owner_id, context_id=final.context_id,
        agent=agent.name,
        state=final.state, status=final.status, status_at=status_at, last_seq=final.seq, metadata=final.metadata,
        snapshot_seq=final.seq, joined_seq=final.seq, snapshot_status=final.status, artifacts=final.artifacts or "[]",
        history=final.history or "[]", queue=agent.queue, priority=agent.priority, timeout=agent.timeout,
        max_attempts=agent.attempts, created_at=plan.now, wants=preferences.json(),
    )  # fmt: skip


def _event_row(plan: Plan, place: int, event: Event, exchange_id: str | None) -> EventRow:
    stored = event_document(event, task_id=plan.run.task_id, context_id=plan.run.context_id, seq=place)
    status = status_of(event)
    return EventRow(
        task_id=plan.run.task_id, seq=place, kind=stored.kind, payload=stored.payload,
        state=stored.state,
        actor=plan.context.actor if place == 1 else "agent", exchange_id=exchange_id,
        created_at=status.timestamp if status else plan.now,
    )  # fmt: skip
