"""Appending on PostgreSQL: one statement for a group."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from a2a.dialects.json.json_1_0 import dumps
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import VISIBLE
from tasks_app.database.tables import EVENTS, as_json
from tasks_app.database.work import LOCKED
from tasks_app.event_log.budgets import settle_ended
from tasks_app.event_log.changes import (
    HAS_RESERVATION,
    HAS_WEBHOOKS,
    NEWER_MESSAGE,
    Appended,
    Change,
    Outcome,
    further_rows,
    number_events,
    register_with,
)
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.snapshots import stale
from tasks_app.models import Task

_TASK = Task._meta.db_table

# 1. r: the items, a row each.
# 2. l: lock the tasks, before the update and in id order: updates that lock as they go deadlock. Locked rows are
#    skipped, or one row that another transaction has locked would stall the whole group. The ids are parameters of
#    their own as well: PostgreSQL expects a hundred rows of a recordset, and reads the whole table for them.
# 3. u: update the tasks whose conditions hold, and return their new sequence numbers.
# 4. e: insert the events, which continue the numbers from before the update, and all further rows of these items.
# 5. Return a row for each item. If the task was not locked, the fourth column says whether it exists.
_APPEND = f"""
with r as (select * from jsonb_to_recordset(%s::jsonb) as x(n bigint, id text, count bigint, sources text[], state text,
        status text, status_at timestamptz, fence bigint, sight text, ends_lease boolean, attempts bigint,
        delay double precision, size bigint, messages bigint, most_size bigint, most_messages bigint, after bigint,
        lease_before timestamptz, wants text, snapshot bigint, artifacts text, history text, with_deliveries boolean,
        message bigint, newest_message bigint, spent bigint, ends_task boolean, settles boolean)),
    l as materialized (
        select id, pushes, message_seq, reserved from {_TASK} where id = any(%s)
        order by id for no key update skip locked),
    u as (update {_TASK} t set last_seq = t.last_seq + r.count, state = coalesce(r.state, t.state),
            status = coalesce(r.status, t.status), status_at = coalesce(r.status_at, t.status_at),
            tries = t.tries + r.attempts, wants = coalesce(r.wants, t.wants), size = t.size + r.size,
            messages = t.messages + r.messages, joined_seq = case when {{fits}} then r.snapshot else t.joined_seq end,
            lease_owner = case when r.ends_lease then null else t.lease_owner end,
            lease_until = case when r.ends_lease then null else t.lease_until end,
            deadline = case when r.ends_lease then null else t.deadline end,
            not_before = case when r.ends_lease then now() + make_interval(secs => r.delay) else t.not_before end,
            run_seq = case when r.after is null then t.run_seq else t.last_seq + r.count end,
            message_seq = coalesce(t.last_seq + r.message, t.message_seq), spent = coalesce(r.spent, t.spent),
            reserved = case when r.ends_task then 0 else t.reserved end,
            snapshot_seq = case when {{fits}} then r.snapshot else t.snapshot_seq end,
            snapshot_status = case when {{fits}} then coalesce(r.status, t.status) else t.snapshot_status end,
            artifacts = case when {{fits}} then r.artifacts else t.artifacts end,
            history = case when {{fits}} then r.history else t.history end
        from r join l on l.id = r.id
        where t.id = r.id and t.id = any(%s) and t.state = any(r.sources)
            and (r.fence is null or t.attempt = r.fence) and (r.sight is null or r.sight = {VISIBLE})
            and (r.after is null or t.run_seq = r.after)
            and (r.newest_message is null or t.message_seq <= r.newest_message)
            and (r.lease_before is null or t.lease_until < r.lease_before)
            and (r.with_deliveries or not t.pushes) and (r.settles or not r.ends_task or t.reserved = 0)
            and (r.most_size is null or (t.size + r.size <= r.most_size and t.messages + r.messages <= r.most_messages))
        returning r.n, t.last_seq, t.snapshot_seq, t.last_seq - r.count as base, t.spent),
    e as (insert into {EVENTS.name} ({EVENTS.list})
        select {", ".join(f"u.base + x.{name}" if name == "seq" else f"x.{name}" for name in EVENTS.columns)}
        from jsonb_to_recordset(%s::jsonb) as x({EVENTS.record}) join u using (n)){{more}}
select r.n, u.last_seq, u.snapshot_seq,
    case when l.id is null then exists (select 1 from {_TASK} held where held.id = r.id) end, l.pushes,
    l.message_seq, l.reserved, u.spent
from r left join u using (n) left join l on l.id = r.id
"""


class _Row(NamedTuple):
    """A row of the statement: what became of one item."""

    n: int
    """The place of the item in the group."""
    seq: int | None
    """The task's last sequence number; None if the item was refused."""
    snapshot_seq: int
    is_locked: bool | None
    """True if another transaction has locked the task, None if none has."""
    pushes: bool | None
    message_seq: int | None
    reserved: int | None
    """The reservation before the item."""
    spent: int | None


def append_in_transaction(items: Sequence[Change]) -> list[Outcome]:
    """Append, write deliveries and settle reservations.

    Raises LockRefused with the tasks that have a webhook or a budget whose row is locked.
    """
    # The cursor first: plans are not discarded within a transaction.
    with prepared() as cursor, transaction.atomic():
        results = append_group(items)
        pairs = [
            (item, result.seq)
            for item, result in zip(items, results, strict=True)
            if item.with_deliveries and isinstance(result, Appended)
        ]
        for item, _ in pairs:
            if item.webhook:
                register_with(cursor, item.webhook)
        write_deliveries(cursor, {item.task_id: number_events(item, seq) for item, seq in pairs})
        settle_ended(cursor, {item.task_id: result for item, result in zip(items, results, strict=True)})
    return results


def append_group(items: Sequence[Change]) -> list[Outcome]:
    """Append each item whose conditions hold, in one statement."""
    for place, item in enumerate(items):
        one = (item.key, item.secret, item.run, item.exchange, item.body, item.entry, item.position)
        for row in (*item.events, *item.files, *item.acts, *one):
            if row is not None:
                row.n = place
    parts = further_rows(items)
    more = "".join(
        f", t{n} as ({table.insert('join u using (n)', table.conflict)})" for n, (table, _) in enumerate(parts)
    )
    statement = _APPEND.format(more=more, fits="t.last_seq + r.count = r.snapshot")
    heads = dumps([_head(item, place) for place, item in enumerate(items)])
    events = as_json([event for item in items for event in item.events])
    ids = [item.task_id for item in items]
    with prepared() as cursor:
        cursor.execute(statement, (heads, ids, ids, events, *(as_json(rows) for _, rows in parts)))
        rows = {row[0]: _Row._make(row) for row in cursor.fetchall()}
    return [_outcome(item, rows[place]) for place, item in enumerate(items)]


def _head(item: Change, place: int) -> dict[str, object]:
    """Return the item as a row of r."""
    snapshot: dict[str, object] = {}
    if (document := item.snapshot) is not None:
        snapshot = {"snapshot": document.seq, "artifacts": document.artifacts, "history": document.history}
    return {
        "n": place,
        "id": item.task_id,
        "count": len(item.events),
        "sources": item.sources,
        "state": item.state,
        "status": item.status,
        "status_at": item.status_at,
        "fence": item.fence,
        "sight": item.sight,
        "ends_lease": item.ends_lease,
        "attempts": item.attempts,
        "delay": item.delay,
        "after": item.after,
        "lease_before": item.lease_before,
        "wants": item.wants,
        "with_deliveries": item.with_deliveries,
        "message": item.last_message,
        "newest_message": item.newest_message,
        "size": item.size,
        "messages": item.messages,
        "most_size": item.most_size,
        "most_messages": item.most_messages,
        "spent": item.spent,
        "ends_task": item.ends_task,
        "settles": item.settles,
        **snapshot,
    }


def _outcome(item: Change, row: _Row) -> Outcome:
    if row.seq is not None:
        unsettled = row.spent if item.ends_task and row.reserved else None
        return Appended(row.seq, stale(row.seq, row.snapshot_seq, item.state), unsettled)
    if row.pushes and not item.with_deliveries:
        item.with_deliveries = True  # The bridge asks for the item again.
        return HAS_WEBHOOKS
    if row.reserved and item.ends_task and not item.settles:
        item.settles = True
        return HAS_RESERVATION
    if item.newest_message is not None and row.message_seq is not None and row.message_seq > item.newest_message:
        return NEWER_MESSAGE
    return LOCKED if row.is_locked else None
