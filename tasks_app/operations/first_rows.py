"""The first rows of a conversation: those of its task or its direct reply."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_message, event_document
from a2a.documents import TaskDocument
from a2a.events import Event, status_of
from a2a.states import TERMINAL
from a2a.types import Message
from tasks_app.database.rows import DirectReplyRow, EventRow, FileRow, TaskRow
from tasks_app.event_log import event_row
from tasks_app.operations.plan import Plan


def task_row(plan: Plan, task: TaskDocument, status_at: datetime, events: Sequence[EventRow]) -> TaskRow:
    """Return the row of a task as of these events, the first of its log."""
    caller, agent = plan.context.caller, plan.agent
    # A quick agent has answered. It is called again only with another message, which has a caller of its own.
    preferences = replace(plan.preferences, caller=None) if plan.quick else plan.preferences
    budget, limit = (plan.request.budget if agent.cost else None), plan.run.spending.limit
    return TaskRow(
        id=task.id,
        tenant_id=caller.tenant_id,
        owner_id=caller.owner_id,
        context_id=task.context_id,
        agent=agent.name,
        state=task.state,
        status=task.status,
        status_at=status_at,
        last_seq=task.seq,
        metadata=task.metadata,
        snapshot_seq=task.seq,
        joined_seq=task.seq,
        snapshot_status=task.status,
        artifacts=task.artifacts or "[]",
        history=task.history or "[]",
        queue=agent.queue,
        priority=agent.priority + plan.request.priority,
        timeout=agent.timeout,
        max_attempts=agent.attempts,
        created_at=plan.now,
        wants=preferences.json(),
        size=sum(event.size for event in events),
        messages=1,
        budget=budget,
        share=limit if limit != budget else None,  # Stored budgets gave a quick agent less.
        spent=plan.final_cost(),
        reserved=0 if task.state in TERMINAL else plan.share,
    )


def event_rows(plan: Plan, events: Sequence[Event], exchange_id: str | None) -> list[EventRow]:
    """Return the rows of the first events. The first one is the caller's, and all others are the quick agent's."""
    rows = []
    for seq, event in enumerate(events, 1):
        document = event_document(event, task_id=plan.run.task_id, context_id=plan.run.context_id, seq=seq)
        status = status_of(event)
        rows.append(
            event_row(
                document,
                now=status.timestamp if status else plan.now,
                actor=plan.context.actor if seq == 1 else "agent",
                exchange_id=exchange_id,
            )
        )
    return rows


def reply_row(plan: Plan, id: str, reply: Message) -> DirectReplyRow:
    """Return the row of a direct reply."""
    return DirectReplyRow(
        id=id,
        owner_id=plan.context.caller.owner_id,
        context_id=plan.run.context_id,
        created_at=plan.now,
        message=dumps(encode_message(plan.request.message)),
        reply=dumps(encode_message(reply)),
    )


def file_rows(plan: Plan, holder: str) -> list[FileRow]:
    """Return the rows of the plan's files, which belong to that task or direct reply from now on."""
    for file in plan.files:
        file.holder = holder
    return plan.files
