"""Rows that operators look at: exchanges, tasks and their logs, as of one moment."""

from datetime import UTC, datetime
from typing import Any

from a2a.dialects.json.json_1_0 import document, dumps, encode_status, event_document
from a2a.events import Event, TaskCreated, apply
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from a2a.types import Task as Value
from tasks_app.ids import uuid7
from tasks_app.models import Event as Row
from tasks_app.models import Exchange, ExchangeBody, Principal, Task

NOW = datetime(2026, 11, 21, 2, 38, 27, 123_000, tzinfo=UTC)


def exchange(owner: Principal | None, request: str = "", **columns: Any) -> Exchange:
    facts: dict[str, Any] = {
        "id": uuid7(),
        "request_id": f"req-{uuid7()}",
        "rpc_id": "7",
        "rpc_id_type": "number",
        "dialect": "a2a-1.0",
        "door": "http",
        "method": "SendMessage",
        "caller": owner,
        "tenant": owner and owner.tenant,
        "outcome": "result",
        "http_status": 200,
        "created_at": NOW,
        "duration_us": 12_345,
    }
    row = Exchange.objects.create(**facts | columns)
    if request:
        ExchangeBody.objects.create(exchange=row, request=request)
    return row


def message(words: str, role: Role = Role.USER) -> Message:
    return Message(message_id=f"m-{uuid7()}", role=role, parts=(Part(text=words),))


def status(state: TaskState, words: str = "") -> Status:
    return Status(state=state, timestamp=NOW, message=message(words, Role.AGENT) if words else None)


def task(
    owner: Principal, *events: Event, words: str = "count to three", exchange_id: str | None = None, **columns: Any
) -> Task:
    """Return a task whose snapshot is its first event, and its log."""
    task_id, context_id = columns.pop("id", None) or uuid7(), columns.pop("context_id", f"ctx-{uuid7()}")
    first = Value(id=task_id, context_id=context_id, status=status(TaskState.SUBMITTED), history=(message(words),))
    stored, now = document(first, 1), first
    for seq, event in enumerate((TaskCreated(task=first), *events), start=1):
        now = apply(now, event)
        row = event_document(event, task_id=task_id, context_id=context_id, seq=seq)
        Row.objects.create(
            task_id=task_id,
            seq=seq,
            kind=row.kind,
            state=row.state,
            payload=row.payload,
            actor="caller",
            exchange_id=exchange_id,
            created_at=NOW,
        )
    facts: dict[str, Any] = {
        "tenant": owner.tenant,
        "owner": owner,
        "agent": "echo",
        "state": now.status.state.value,
        "status": dumps(encode_status(now.status)),
        "status_at": NOW,
        "last_seq": 1 + len(events),
        "snapshot_seq": 1,
        "snapshot_status": stored.status,
        "artifacts": stored.artifacts,
        "history": stored.history,
        "timeout": 300.0,
        "created_at": NOW,
    }
    return Task.objects.create(id=task_id, context_id=context_id, **facts | columns)
