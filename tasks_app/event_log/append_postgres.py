"""Appending on PostgreSQL: one statement for a group."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from a2a.dialects.json.json_1_0 import dumps
from a2a.documents import TaskDocument
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import EVENTS, VISIBLE, as_json
from tasks_app.database.work import LOCKED
from tasks_app.event_log.changes import (
    PUSHING,
    UNHEARD,
    Appended,
    Change,
    Outcome,
    further_rows,
    numbered,
    register_with,
)
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.snapshots import stale
from tasks_app.models import Task

_TASK = Task._meta.db_table

# The lock comes first and in id order: updates that lock as they go deadlock. Locked rows are skipped, or one row
# held by somebody else would stall the whole group. The ids are given apart as well: of a recordset PostgreSQL expects
# a hundred rows, and reads the whole table for them.
_APPEND = f"""
with r as (select * from jsonb_to_recordset(%s::jsonb) as x(n bigint, id text, count bigint, sources text[], state text,
        status text, status_at timestamptz, fence bigint, sight text, frees boolean, attempts bigint,
        delay double precision, size bigint, messages bigint, most_size bigint, most_messages bigint, after bigint,
        lease_before timestamptz, wants text, snapshot bigint, artifacts text, history text, pushing boolean,
        message bigint, heard bigint)),
    l as materialized (
        select id, pushes, message_seq from {_TASK} where id = any(%s) order by id for no key update skip locked),
    u as (update {_TASK} t set last_seq = t.last_seq + r.count, state = coalesce(r.state, t.state),
            status = coalesce(r.status, t.status), status_at = coalesce(r.status_at, t.status_at),
            tries = t.tries + r.attempts, wants = coalesce(r.wants, t.wants), size = t.size + r.size,
            messages = t.messages + r.messages, joined_seq = case when {{known}} then r.snapshot else t.joined_seq end,
            lease_owner = case when r.frees then null else t.lease_owner end,
            lease_until = case when r.frees then null else t.lease_until end,
            deadline = case when r.frees then null else t.deadline end,
            not_before = case when r.frees then now() + make_interval(secs => r.delay) else t.not_before end,
            run_seq = case when r.after is null then t.run_seq else t.last_seq + r.count end,
            message_seq = coalesce(t.last_seq + r.message, t.message_seq),
            snapshot_seq = case when {{known}} then r.snapshot else t.snapshot_seq end,
            snapshot_status = case when {{known}} then coalesce(r.status, t.status) else t.snapshot_status end,
            artifacts = case when {{known}} then r.artifacts else t.artifacts end,
            history = case when {{known}} then r.history else t.history end
        from r join l on l.id = r.id
        where t.id = r.id and t.id = any(%s) and t.state = any(r.sources)
            and (r.fence is null or t.attempt = r.fence) and (r.sight is null or r.sight = {VISIBLE})
            and (r.after is null or t.run_seq = r.after) and (r.heard is null or t.message_seq <= r.heard)
            and (r.lease_before is null or t.lease_until < r.lease_before)
            and (r.pushing or not t.pushes)
            and (r.most_size is null or (t.size + r.size <= r.most_size and t.messages + r.messages <= r.most_messages))
        returning r.n, t.last_seq, t.snapshot_seq, t.last_seq - r.count as base),
    e as (insert into {EVENTS.name} ({EVENTS.list})
        select {", ".join(f"u.base + x.{name}" if name == "seq" else f"x.{name}" for name in EVENTS.columns)}
        from jsonb_to_recordset(%s::jsonb) as x({EVENTS.record}) join u using (n)){{more}}
select r.n, u.last_seq, u.snapshot_seq,
    case when l.id is null then exists (select 1 from {_TASK} held where held.id = r.id) end, l.pushes,
    l.message_seq
from r left join u using (n) left join l on l.id = r.id
"""


def append_pushing(items: Sequence[Change]) -> list[Outcome]:
    """Append with deliveries. Raises Held for tasks that have a webhook whose row is locked."""
    # The cursor first: within a transaction no plan is made anew.
    with prepared() as cursor, transaction.atomic():
        results = append_group(items)
        flagged = [
            (item, result.seq)
            for item, result in zip(items, results, strict=True)
            if item.pushing and isinstance(result, Appended)
        ]
        for item, _ in flagged:
            if item.webhook:
                register_with(cursor, item.webhook)
        write_deliveries(cursor, {item.task_id: numbered(item, seq) for item, seq in flagged})
    return results


def append_group(items: Sequence[Change]) -> list[Outcome]:
    heads = []
    for place, item in enumerate(items):
        for row in (*item.events, *item.files, item.key, item.run, item.exchange, item.body):
            if row is not None:
                row.n = place
        heads.append(
            {
                "n": place, "id": item.task_id, "count": len(item.events), "sources": item.sources, "state": item.state,
                "status": item.status, "status_at": item.status_at, "fence": item.fence, "sight": item.sight,
                "frees": item.frees, "attempts": item.attempts, "delay": item.delay,
                "after": item.after, "lease_before": item.lease_before,
                "wants": item.wants, "pushing": item.pushing, "message": item.last_message, "heard": item.heard,
                "size": item.size, "messages": item.messages, "most_size": item.most_size,
                "most_messages": item.most_messages,
            }
            | _snapshot(item.snapshot)
        )  # fmt: skip
    parts = further_rows(items)
    more = "".join(f", t{n} as ({table.insert('join u using (n)')})" for n, (table, _) in enumerate(parts))
    statement = _APPEND.format(more=more, known="t.last_seq + r.count = r.snapshot")
    events = as_json([event for item in items for event in item.events])
    ids = [item.task_id for item in items]
    with prepared() as cursor:
        cursor.execute(statement, (dumps(heads), ids, ids, events, *(as_json(rows) for _, rows in parts)))
        rows = {n: rest for n, *rest in cursor.fetchall()}
    return [_outcome(item, *rows[place]) for place, item in enumerate(items)]


def _snapshot(document: TaskDocument | None) -> dict[str, Any]:
    if document is None:
        return {}
    return {"snapshot": document.seq, "artifacts": document.artifacts, "history": document.history}


def _outcome(
    item: Change, seq: int | None, snapshot_seq: int, held: bool | None, pushes: bool | None, message_seq: int | None
) -> Outcome:
    if seq is not None:
        return Appended(seq, stale(seq, snapshot_seq, item.state))
    if pushes and not item.pushing:
        item.pushing = True  # For the next time.
        return PUSHING
    if item.heard is not None and message_seq is not None and message_seq > item.heard:
        return UNHEARD
    return LOCKED if held else None
