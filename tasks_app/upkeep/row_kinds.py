"""The kinds of rows that have a retention time. portions.py deletes the oldest rows of each."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Model, QuerySet
from msgspec import Struct

from tasks_app.ids import uuid7_at
from tasks_app.memory.expiry import overdue
from tasks_app.models import (
    AuditEntry,
    Delivery,
    DirectReply,
    Exchange,
    IdempotencyKey,
    Receiver,
    Refusals,
    RefusedCalls,
    RunSecret,
    SocketTicket,
    Usage,
)
from tasks_app.upkeep import portions
from tasks_app.upkeep.portions import Portion
from tasks_app.workflows.expiry import unused


class RowKind(Struct, frozen=True, kw_only=True):
    """A kind of row with a retention time."""

    name: str
    age: Callable[[], timedelta]
    """Returns the retention time."""
    delete: Callable[[datetime, str, int], Portion]
    """Deletes rows older than a time, from a place on, up to a number of rows."""
    old: Callable[[datetime], QuerySet[Any]]
    """Returns the queryset of the rows older than a time."""
    time_of: Callable[[str], datetime]
    """Returns the time at which the row at a place was made."""
    is_record: bool = False
    """Whether the rows are a record of what was done, which no operator deletes before its time."""


def _time_of_id(id: str) -> datetime:
    return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)


def _of_time(name: str, model: type[Model], column: str, age: Callable[[], timedelta]) -> RowKind:
    """Return the kind of the rows of a table whose age is that of a time in a column."""
    return RowKind(
        name=name,
        age=age,
        delete=partial(portions.delete_by_time, model._meta.db_table, column),
        old=lambda before: model._default_manager.filter(**{f"{column}__lt": before}),
        time_of=datetime.fromisoformat,
    )


def _like_tasks(
    name: str, delete: Callable[[datetime, str, int], Portion], old: Callable[[datetime], QuerySet[Any]]
) -> RowKind:
    """Return a kind of rows that are retained as long as tasks."""
    age = partial(_days_of, "A2A_TASK_DAYS")
    return RowKind(name=name, age=age, delete=delete, old=old, time_of=_time_of_id)


def _days_of(setting: str) -> timedelta:
    return timedelta(days=getattr(settings, setting))


ROW_KINDS = {
    kind.name: kind
    for kind in (
        _of_time("message_ids", IdempotencyKey, "created_at", lambda: timedelta(hours=settings.A2A_KEY_HOURS)),
        _of_time("tickets", SocketTicket, "expires_at", lambda: timedelta(0)),  # They have an end of their own.
        _of_time("receivers", Receiver, "expires_at", lambda: timedelta(0)),  # They have an end of their own.
        RowKind(
            name="memory",
            age=lambda: timedelta(0),  # They have an end of their own.
            delete=portions.delete_memory,
            old=overdue,
            time_of=datetime.fromisoformat,
        ),
        _of_time("refusals", Refusals, "minute", lambda: timedelta(days=settings.A2A_EXCHANGE_DAYS)),
        _of_time("secrets", RunSecret, "expires_at", lambda: timedelta(0)),  # They have an end of their own.
        _of_time("sessions", Session, "expire_date", lambda: timedelta(0)),  # They have an end of their own.
        _of_time("usage", Usage, "created_at", lambda: timedelta(days=settings.A2A_USAGE_DAYS)),
        RowKind(
            name="exchanges",
            age=lambda: timedelta(days=settings.A2A_EXCHANGE_DAYS),
            delete=portions.delete_exchanges,
            old=lambda before: Exchange.objects.filter(id__lt=uuid7_at(before)),
            time_of=_time_of_id,
        ),
        RowKind(
            name="audit",
            age=lambda: timedelta(days=settings.A2A_AUDIT_DAYS),
            delete=portions.delete_audit,
            old=lambda before: AuditEntry.objects.filter(id__lt=uuid7_at(before)),
            time_of=_time_of_id,
            is_record=True,
        ),
        RowKind(
            name="refused_calls",
            age=lambda: timedelta(days=settings.A2A_AUDIT_DAYS),
            delete=portions.delete_refused_calls,
            old=lambda before: RefusedCalls.objects.filter(hour__lt=before),
            time_of=datetime.fromisoformat,
            is_record=True,
        ),
        RowKind(
            name="deliveries",
            age=lambda: timedelta(days=settings.A2A_EXCHANGE_DAYS),
            delete=portions.delete_deliveries,
            old=lambda before: Delivery.objects.filter(id__lt=uuid7_at(before), state__in=portions.DONE),
            time_of=_time_of_id,
        ),
        _like_tasks(
            "replies", portions.delete_replies, lambda before: DirectReply.objects.filter(id__lt=uuid7_at(before))
        ),
        _like_tasks("shared_streams", portions.delete_shared_streams, portions.old_shared_streams),
        _like_tasks("slack_questions", portions.delete_slack_questions, portions.old_slack_questions),
        _like_tasks("workflows", portions.delete_workflows, unused),
        _like_tasks("tasks", portions.delete_tasks, portions.old_tasks),
    )
}
"""Every kind of row by its name. Tasks come last, because rows of other kinds point at them."""
