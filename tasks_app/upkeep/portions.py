"""Portions of old rows: the statements that delete the oldest rows of each kind.

Each statement begins where the last one ended. The index keeps entries of deleted rows until a vacuum; a statement that
began at the oldest entry would step over all of them, and each batch would be slower than the last.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, OuterRef, QuerySet
from msgspec import Struct

from a2a.states import TERMINAL
from tasks_app.audit import deletion
from tasks_app.database.sql import among, on_postgres, one_of, sql_time
from tasks_app.ids import uuid7_at
from tasks_app.memory.expiry import remove_overdue
from tasks_app.models import (
    AgentAnswer,
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
    Participant,
    RefusedCalls,
    RelayedTask,
    Run,
    SharedStream,
    SlackQuestion,
    Task,
    Webhook,
)
from tasks_app.models.states import DeliveryState
from tasks_app.workflows.expiry import remove_unused

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


def _skip_locks() -> str:
    """Return the clause that skips rows locked by another transaction; a later pass deletes them."""
    return "for update skip locked" if on_postgres() else ""


# ---------------------------------------- rows with a time of their own

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


def delete_by_time(table: str, column: str, before: datetime, place: str, limit: int) -> Portion:
    """Delete rows of a table by the time in a column."""
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


def delete_exchanges(before: datetime, place: str, limit: int) -> Portion:
    """Delete exchanges with their bodies."""
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


# ---------------------------------------------------------------- audit


def delete_audit(before: datetime, place: str, limit: int) -> Portion:
    """Delete entries of the audit."""
    ids = deletion.delete_entries(uuid7_at(before), place, limit)
    return _portion(ids, place, limit)


def delete_refused_calls(before: datetime, _place: str, limit: int) -> Portion:
    """Delete counts of refused calls."""
    old = RefusedCalls.objects.filter(hour__lt=before).order_by("hour", "pk").values_list("pk", flat=True)
    count, _ = RefusedCalls.objects.filter(pk__in=list(old[:limit])).delete()
    return Portion(count, "", count == limit)


# ----------------------------------------------- replies and deliveries


def delete_replies(before: datetime, place: str, limit: int) -> Portion:
    """Delete direct replies, and release their files."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"select id from {_REPLY} where id > %s and id < %s order by id limit %s {_skip_locks()}",
            (place, uuid7_at(before), limit),
        )
        ids = [id for (id,) in cursor.fetchall()]
        _release_files(cursor, ids)
        _delete_where(cursor, _REPLY, "id", ids)
    return _portion(ids, place, limit)


def delete_deliveries(before: datetime, place: str, limit: int) -> Portion:
    """Delete deliveries that are over, with their tries."""
    states, values = one_of("state", DONE)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"select id from {_DELIVERY} where id > %s and id < %s and {states} order by id limit %s {_skip_locks()}",
            (place, uuid7_at(before), *values, limit),
        )
        ids = _delete_found_deliveries(cursor)
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


def delete_tasks(before: datetime, place: str, limit: int) -> Portion:
    """Delete ended tasks with all their rows.

    The limit counts events, because they are most of a task's rows. A portion has at least one task, however large.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{_OLD_TASKS} {_skip_locks()}", (place, uuid7_at(before), sql_time(before), limit))
        old = cursor.fetchall()
        ids = _first_ids(old, limit)
        if _delete_deliveries_of(cursor, ids, limit):
            return Portion(0, place, more=True)  # More deliveries may point at these tasks: delete those first.
        _release_files(cursor, ids)
        _delete_where(cursor, BatchItem._meta.db_table, "batch_id", ids)
        _delete_where(cursor, Batch._meta.db_table, "id", ids)
        for model in (Event, Run, Webhook, RelayedTask):
            _delete_where(cursor, model._meta.db_table, "task_id", ids)
        _delete_where(cursor, _TASK, "id", ids)
    return _portion_of(ids, old, place, limit)


def _delete_deliveries_of(cursor: CursorWrapper, tasks: Sequence[str], limit: int) -> bool:
    """Delete deliveries of these tasks, up to the limit; return whether there may be more."""
    if not tasks:
        return False
    condition, values = one_of("task_id", tasks)
    cursor.execute(f"select id from {_DELIVERY} where {condition} limit %s", (*values, limit))
    return len(_delete_found_deliveries(cursor)) == limit


def _delete_found_deliveries(cursor: CursorWrapper) -> list[str]:
    """Delete the deliveries whose ids the last statement has found, with their tries; return the ids."""
    ids = [id for (id,) in cursor.fetchall()]
    _delete_where(cursor, _TRY, "delivery_id", ids)
    _delete_where(cursor, _DELIVERY, "id", ids)
    return ids


def old_tasks(before: datetime) -> QuerySet[Task]:
    """Return the tasks that `delete_tasks` deletes."""
    states = [state.value for state in TERMINAL]
    rows = Task.objects.filter(id__lt=uuid7_at(before), status_at__lt=before, state__in=states)
    waiting = Delivery.objects.filter(task_id=OuterRef("pk"), state=DeliveryState.WAITING)
    return rows.exclude(Exists(waiting), pushes=True)


# ----------------------------- memory, shared streams, Slack, workflows


def delete_memory(before: datetime, _place: str, limit: int) -> Portion:
    """Delete entries of the memory that have ended."""
    count = remove_overdue(before, limit)
    return Portion(count, "", count == limit)


def delete_shared_streams(before: datetime, place: str, limit: int) -> Portion:
    """Delete closed shared streams with their chunks, which the limit counts. A portion has at least one stream."""
    with transaction.atomic():
        rows = old_shared_streams(before).filter(pk__gt=place).order_by("pk")
        old = list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "last_seq")[:limit])
        ids = _first_ids(old, limit)
        for model in (Chunk, AgentAnswer, Participant):
            model.objects.filter(stream_id__in=ids)._raw_delete(using=connection.alias)
        SharedStream.objects.filter(pk__in=ids)._raw_delete(using=connection.alias)
    return _portion_of(ids, old, place, limit)


def old_shared_streams(before: datetime) -> QuerySet[SharedStream]:
    """Return the shared streams that `delete_shared_streams` deletes."""
    return SharedStream.objects.filter(id__lt=uuid7_at(before), closed_at__lt=before)


def delete_slack_questions(before: datetime, place: str, limit: int) -> Portion:
    """Delete questions from Slack."""
    rows = old_slack_questions(before).filter(pk__gt=place).order_by("pk")
    with transaction.atomic():
        ids = list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:limit])
        SlackQuestion.objects.filter(pk__in=ids)._raw_delete(using=connection.alias)
    return _portion(ids, place, limit)


def old_slack_questions(before: datetime) -> QuerySet[SlackQuestion]:
    """Return the questions that `delete_slack_questions` deletes."""
    return SlackQuestion.objects.filter(id__lt=uuid7_at(before))


def delete_workflows(before: datetime, place: str, limit: int) -> Portion:
    """Delete workflows that are not used any more, with their tasks."""
    return _portion(remove_unused(before, place, limit), place, limit)


# ----------------------------------------------- steps of several kinds


def _portion(ids: Sequence[str], place: str, limit: int) -> Portion:
    return Portion(len(ids), max(ids, default=place), len(ids) == limit)


def _first_ids(old: Sequence[tuple[str, int]], limit: int) -> list[str]:
    """Return the first ids whose rows, as counted beside them, are within the limit together; one at least."""
    ids: list[str] = []
    rows = 0
    for id, count in old:
        if ids and rows + count > limit:
            break
        ids.append(id)
        rows += count
    return ids


def _portion_of(ids: Sequence[str], old: Sequence[tuple[str, int]], place: str, limit: int) -> Portion:
    """Return the portion that deleted the first of some old ones."""
    return Portion(len(ids), ids[-1] if ids else place, len(old) == limit or len(ids) < len(old))


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
