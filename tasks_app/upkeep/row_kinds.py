"""The kinds of rows that have a retention time, and the statements that delete the oldest rows of each.

Each statement begins where the last one ended. The index keeps entries of deleted rows until a vacuum; a statement that
began at the oldest entry would step over all of them, and each batch would be slower than the last.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, Model, OuterRef, QuerySet
from msgspec import Struct

from a2a.states import TERMINAL
from tasks_app.audit import deletion
from tasks_app.database.sql import among, on_postgres, one_of, sql_time
from tasks_app.ids import uuid7_at
from tasks_app.memory.expiry import overdue, remove_overdue
from tasks_app.models import (
    AgentAnswer,
    AuditEntry,
    Batch,
    BatchItem,
    Chunk,
    Delivery,
    DeliveryTry,
    DirectReply,
    Event,
    Exchange,
    ExchangeBody,
    File,
    IdempotencyKey,
    Participant,
    Receiver,
    Refusals,
    RefusedCalls,
    RelayedTask,
    Run,
    RunSecret,
    SharedStream,
    SlackQuestion,
    SocketTicket,
    Task,
    Usage,
    Webhook,
)
from tasks_app.models.states import DeliveryState
from tasks_app.workflows.expiry import remove_unused, unused

_TASK, _REPLY = Task._meta.db_table, DirectReply._meta.db_table
_EXCHANGE, _BODY, _FILE = Exchange._meta.db_table, ExchangeBody._meta.db_table, File._meta.db_table
_DELIVERY, _TRY = Delivery._meta.db_table, DeliveryTry._meta.db_table
DONE = (DeliveryState.DELIVERED, DeliveryState.SUPERSEDED)
"""States of deliveries that are deleted when exchanges of the same age are."""


class Portion(Struct, frozen=True):
    """The result of one step."""

    count: int
    """Rows of the kind that were deleted."""
    place: str
    """Where the next step begins: an id or a time, as `delete` takes it."""
    more: bool
    """Whether there may be more rows to delete."""


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


def _skip_locks() -> str:
    """Return the clause that skips rows locked by another transaction; a later pass deletes them."""
    return "for update skip locked" if on_postgres() else ""


# ------------------------------------------------------ keys and tickets

# The inner select finds the rows in the order of the index and locks them. The delete takes them by their physical
# address (`ctid`), without a second search.
_BY_TIME_POSTGRES = """
with gone as (delete from {table} where ctid = any(array(
    select ctid from {table} where {column} >= %s and {column} < %s order by {column} limit %s
    for update skip locked)) returning {column})
select count(*), max({column}) from gone
"""
_BY_TIME_SQLITE = """
delete from {table} where rowid in (
    select rowid from {table} where {column} >= %s and {column} < %s order by {column} limit %s)
returning {column}
"""


def _delete_by_time(table: str, column: str, before: datetime, place: str, limit: int) -> Portion:
    start = datetime.fromisoformat(place) if place else datetime(1970, 1, 1, tzinfo=UTC)
    statement = (_BY_TIME_POSTGRES if on_postgres() else _BY_TIME_SQLITE).format(table=table, column=column)
    with connection.cursor() as cursor:
        cursor.execute(statement, (sql_time(start), sql_time(before), limit))
        if on_postgres():
            count, last = cursor.fetchone()
            return Portion(count, last.isoformat() if last else place, count == limit)
        times = [time for (time,) in cursor.fetchall()]
    return Portion(len(times), f"{max(times)}+00:00" if times else place, len(times) == limit)


# ------------------------------------------------------------- exchanges

_EXCHANGES_POSTGRES = f"""
with gone as (delete from {_EXCHANGE} where ctid = any(array(
        select ctid from {_EXCHANGE} where id > %s and id < %s order by id limit %s for update skip locked))
    returning id),
bodies as (delete from {_BODY} where exchange_id = any(array(select id from gone)))
select count(*), max(id) from gone
"""
_EXCHANGES_SQLITE = f"""
delete from {_EXCHANGE} where rowid in (
    select rowid from {_EXCHANGE} where id > %s and id < %s order by id limit %s)
returning id
"""


def _delete_exchanges(before: datetime, place: str, limit: int) -> Portion:
    values = (place, uuid7_at(before), limit)
    if on_postgres():
        with connection.cursor() as cursor:
            cursor.execute(_EXCHANGES_POSTGRES, values)
            count, last = cursor.fetchone()
        return Portion(count, last or place, count == limit)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_EXCHANGES_SQLITE, values)
        ids = [id for (id,) in cursor.fetchall()]
        _delete_where(cursor, _BODY, "exchange_id", ids)
    return _portion(ids, place, limit)


# -------------------------------------------------- replies and deliveries


def _delete_audit(before: datetime, place: str, limit: int) -> Portion:
    ids = deletion.delete_entries(uuid7_at(before), place, limit)
    return _portion(ids, place, limit)


def _delete_refused_calls(before: datetime, _place: str, limit: int) -> Portion:
    old = RefusedCalls.objects.filter(hour__lt=before).order_by("hour", "pk").values_list("pk", flat=True)
    count, _ = RefusedCalls.objects.filter(pk__in=list(old[:limit])).delete()
    return Portion(count, "", count == limit)


def _delete_replies(before: datetime, place: str, limit: int) -> Portion:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"select id from {_REPLY} where id > %s and id < %s order by id limit %s {_skip_locks()}",
            (place, uuid7_at(before), limit),
        )
        ids = [id for (id,) in cursor.fetchall()]
        _release_files(cursor, ids)
        _delete_where(cursor, _REPLY, "id", ids)
    return _portion(ids, place, limit)


def _delete_deliveries(before: datetime, place: str, limit: int) -> Portion:
    states, values = one_of("state", DONE)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"select id from {_DELIVERY} where id > %s and id < %s and {states} order by id limit %s {_skip_locks()}",
            (place, uuid7_at(before), *values, limit),
        )
        ids = [id for (id,) in cursor.fetchall()]
        _delete_where(cursor, _TRY, "delivery_id", ids)
        _delete_where(cursor, _DELIVERY, "id", ids)
    return _portion(ids, place, limit)


# ----------------------------------------------------------------- tasks

# Ids begin with the time of creation, so the primary key is an index on age. A task with a waiting delivery
# stays until the delivery is over.
_OLD_TASKS = f"""
select id, last_seq from {_TASK} t where id > %s and id < %s and status_at < %s and state {among(TERMINAL)}
    and not (pushes and exists (
        select 1 from {_DELIVERY} d where d.task_id = t.id and d.state = '{DeliveryState.WAITING}'))
order by id limit %s
"""


def _delete_tasks(before: datetime, place: str, limit: int) -> Portion:
    """Delete ended tasks with all their rows.

    The limit counts events, because they are most of a task's rows. A portion has at least one task, however large.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{_OLD_TASKS} {_skip_locks()}", (place, uuid7_at(before), sql_time(before), limit))
        old = cursor.fetchall()
        ids: list[str] = []
        rows = 0
        for id, events in old:
            if ids and rows + events > limit:
                break
            ids.append(id)
            rows += events
        if _delete_deliveries_of(cursor, ids, limit):
            return Portion(0, place, more=True)  # More deliveries may point at these tasks: delete those first.
        _release_files(cursor, ids)
        _delete_where(cursor, BatchItem._meta.db_table, "batch_id", ids)
        _delete_where(cursor, Batch._meta.db_table, "id", ids)
        for model in (Event, Run, Webhook, RelayedTask):
            _delete_where(cursor, model._meta.db_table, "task_id", ids)
        _delete_where(cursor, _TASK, "id", ids)
    return Portion(len(ids), ids[-1] if ids else place, len(old) == limit or len(ids) < len(old))


def _delete_deliveries_of(cursor: CursorWrapper, tasks: Sequence[str], limit: int) -> bool:
    """Delete deliveries of these tasks, up to the limit; return whether there may be more."""
    if not tasks:
        return False
    condition, values = one_of("task_id", tasks)
    cursor.execute(f"select id from {_DELIVERY} where {condition} limit %s", (*values, limit))
    ids = [id for (id,) in cursor.fetchall()]
    _delete_where(cursor, _TRY, "delivery_id", ids)
    _delete_where(cursor, _DELIVERY, "id", ids)
    return len(ids) == limit


def _portion(ids: Sequence[str], place: str, limit: int) -> Portion:
    return Portion(len(ids), max(ids, default=place), len(ids) == limit)


def _delete_where(cursor: CursorWrapper, table: str, column: str, values: Sequence[str]) -> None:
    if values:
        condition, parameters = one_of(column, values)
        cursor.execute(f"delete from {table} where {condition}", parameters)


def _release_files(cursor: CursorWrapper, holders: Sequence[str]) -> None:
    """Mark the files of these holders as unused.

    A sweep deletes them and their bytes later: deleting bytes may take longer than a transaction should.
    """
    if holders:
        condition, parameters = one_of("holder", holders)
        cursor.execute(f"update {_FILE} set holder = '' where {condition}", parameters)


def _time_of_id(id: str) -> datetime:
    return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)


def _old_tasks(before: datetime) -> QuerySet[Task]:
    states = [state.value for state in TERMINAL]
    rows = Task.objects.filter(id__lt=uuid7_at(before), status_at__lt=before, state__in=states)
    waiting = Delivery.objects.filter(task_id=OuterRef("pk"), state=DeliveryState.WAITING)
    return rows.exclude(Exists(waiting), pushes=True)


def _of_time(name: str, model: type[Model], column: str, age: Callable[[], timedelta]) -> RowKind:
    """Return the kind of the rows of a table whose age is that of a time in a column."""
    return RowKind(
        name=name,
        age=age,
        delete=partial(_delete_by_time, model._meta.db_table, column),
        old=lambda before: model._default_manager.filter(**{f"{column}__lt": before}),
        time_of=datetime.fromisoformat,
    )


def _delete_memory(before: datetime, _place: str, limit: int) -> Portion:
    count = remove_overdue(before, limit)
    return Portion(count, "", count == limit)


def _delete_shared_streams(before: datetime, place: str, limit: int) -> Portion:
    """Delete closed shared streams with their chunks, which the limit counts. A portion has at least one stream."""
    with transaction.atomic():
        rows = _old_shared_streams(before).filter(pk__gt=place).order_by("pk")
        old = list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "last_seq")[:limit])
        ids: list[str] = []
        chunks = 0
        for id, count in old:
            if ids and chunks + count > limit:
                break
            ids.append(id)
            chunks += count
        for model in (Chunk, AgentAnswer, Participant):
            model.objects.filter(stream_id__in=ids)._raw_delete(using=connection.alias)
        SharedStream.objects.filter(pk__in=ids)._raw_delete(using=connection.alias)
    return Portion(len(ids), ids[-1] if ids else place, len(old) == limit or len(ids) < len(old))


def _old_shared_streams(before: datetime) -> QuerySet[SharedStream]:
    return SharedStream.objects.filter(id__lt=uuid7_at(before), closed_at__lt=before)


def _delete_slack_questions(before: datetime, place: str, limit: int) -> Portion:
    rows = _old_slack_questions(before).filter(pk__gt=place).order_by("pk")
    with transaction.atomic():
        ids = list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:limit])
        SlackQuestion.objects.filter(pk__in=ids)._raw_delete(using=connection.alias)
    return _portion(ids, place, limit)


def _old_slack_questions(before: datetime) -> QuerySet[SlackQuestion]:
    return SlackQuestion.objects.filter(id__lt=uuid7_at(before))


def _delete_workflows(before: datetime, place: str, limit: int) -> Portion:
    return _portion(remove_unused(before, place, limit), place, limit)


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
            delete=_delete_memory,
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
            delete=_delete_exchanges,
            old=lambda before: Exchange.objects.filter(id__lt=uuid7_at(before)),
            time_of=_time_of_id,
        ),
        RowKind(
            name="audit",
            age=lambda: timedelta(days=settings.A2A_AUDIT_DAYS),
            delete=_delete_audit,
            old=lambda before: AuditEntry.objects.filter(id__lt=uuid7_at(before)),
            time_of=_time_of_id,
            is_record=True,
        ),
        RowKind(
            name="refused_calls",
            age=lambda: timedelta(days=settings.A2A_AUDIT_DAYS),
            delete=_delete_refused_calls,
            old=lambda before: RefusedCalls.objects.filter(hour__lt=before),
            time_of=datetime.fromisoformat,
            is_record=True,
        ),
        RowKind(
            name="deliveries",
            age=lambda: timedelta(days=settings.A2A_EXCHANGE_DAYS),
            delete=_delete_deliveries,
            old=lambda before: Delivery.objects.filter(id__lt=uuid7_at(before), state__in=DONE),
            time_of=_time_of_id,
        ),
        _like_tasks("replies", _delete_replies, lambda before: DirectReply.objects.filter(id__lt=uuid7_at(before))),
        _like_tasks("shared_streams", _delete_shared_streams, _old_shared_streams),
        _like_tasks("slack_questions", _delete_slack_questions, _old_slack_questions),
        _like_tasks("workflows", _delete_workflows, unused),
        _like_tasks("tasks", _delete_tasks, _old_tasks),
    )
}
"""Every kind of row by its name. Tasks come last, because rows of other kinds point at them."""
