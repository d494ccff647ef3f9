"""Appending on SQLite: item by item, in one transaction."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.backends.utils import CursorWrapper

from tasks_app import clock
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import VISIBLE, sqlite_time
from tasks_app.database.tables import EVENTS
from tasks_app.event_log.changes import (
    NEWER_MESSAGE,
    Appended,
    Change,
    NewerMessage,
    Outcome,
    further_rows,
    number_events,
    register_with,
)
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.snapshots import stale, write_snapshot
from tasks_app.limits.budgets import settle
from tasks_app.models import Task

_TASK = Task._meta.db_table
# The groups of values are those of _values().
_UPDATE = f"""
update {_TASK} as t set last_seq = last_seq + %s, state = coalesce(%s, state), status = coalesce(%s, status),
    status_at = coalesce(%s, status_at), tries = tries + %s, wants = coalesce(%s, wants),
    size = size + %s, messages = messages + %s,
    lease_owner = case when %s then null else lease_owner end,
    lease_until = case when %s then null else lease_until end, deadline = case when %s then null else deadline end,
    not_before = case when %s then %s else not_before end,
    run_seq = case when %s is null then run_seq else last_seq + %s end,
    message_seq = coalesce(last_seq + %s, message_seq), spent = coalesce(%s, spent)
where id = %s and (%s is null or attempt = %s) and (%s is null or run_seq = %s) and (%s is null or %s = {VISIBLE})
    and (%s is null or message_seq <= %s) and (%s is null or lease_until < %s)
    and (%s is null or (size + %s <= %s and messages + %s <= %s)) and state in ({{marks}})
returning last_seq, snapshot_seq, pushes, size, reserved, spent
"""


def append_group(items: Sequence[Change]) -> list[Outcome]:
    """Append each item whose conditions hold."""
    with transaction.atomic(), prepared() as cursor:
        return [_append_one(cursor, item) for item in items]


def _append_one(cursor: CursorWrapper, item: Change) -> Appended | NewerMessage | None:
    cursor.execute(_UPDATE.format(marks=", ".join(["%s"] * len(item.sources))), _values(item))
    row = cursor.fetchone()
    if row is None:
        return _explain_refusal(cursor, item)
    seq, snapshot_seq, pushes, size, reserved, spent = row
    if item.snapshot is not None and item.snapshot.seq == seq:
        write_snapshot(cursor, item.snapshot)
        snapshot_seq = seq
    events = number_events(item, seq)
    EVENTS.write(cursor, events)
    for table, rows in further_rows([item]):
        table.write(cursor, rows)
    if item.webhook:
        register_with(cursor, item.webhook)
    if pushes or item.webhook:
        write_deliveries(cursor, {item.task_id: events})
    if not (item.ends_task and reserved):
        return Appended(seq, stale(seq, snapshot_seq, item.state, size))
    cursor.execute(f"update {_TASK} set reserved = 0 where id = %s", (item.task_id,))
    settle(cursor, {item.task_id: spent})
    return Appended(seq, stale(seq, snapshot_seq, item.state, size), spent)


def _values(item: Change) -> tuple[str | int | None, ...]:
    """Return the values of the update: those it sets, in three groups, and those of the conditions, in four."""
    count = len(item.events)
    at = sqlite_time(item.status_at) if item.status_at else None
    due = None if item.delay is None else sqlite_time(clock.now() + timedelta(seconds=item.delay))
    before = sqlite_time(item.lease_before) if item.lease_before else None
    return (
        *(count, item.state, item.status, at, item.attempts, item.wants, item.size, item.messages),
        *(item.ends_lease, item.ends_lease, item.ends_lease, item.ends_lease, due),
        *(item.after, count, item.last_message, item.spent),
        *(item.task_id, item.fence, item.fence, item.after, item.after, item.sight, item.sight),
        *(item.newest_message, item.newest_message, before, before),
        *(item.most_size, item.size, item.most_size, item.messages, item.most_messages),
        *item.sources,
    )


def _explain_refusal(cursor: CursorWrapper, item: Change) -> NewerMessage | None:
    if item.newest_message is None:
        return None
    cursor.execute(f"select 1 from {_TASK} where id = %s and message_seq > %s", (item.task_id, item.newest_message))
    return NEWER_MESSAGE if cursor.fetchone() else None
