"""The only change of a task that exists: under its fence, its state and its sequence, in groups.

One item is one conditional update: visible, of that attempt, in a state from which the events may follow. It gives the
next sequence numbers, and the events, the run and the exchange are inserted with it or not at all.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from django.db import transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status, event_document
from a2a.documents import TaskDocument
from a2a.events import Event, status_of
from a2a.states import QUIET, TERMINAL, TRANSITIONS, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import Held
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import (
    BODIES,
    EVENTS,
    EXCHANGES,
    FILES,
    KEYS,
    RUNS,
    VISIBLE,
    BodyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    RunRow,
    Table,
    WebhookRow,
    as_json,
    on_postgres,
    sqlite_time,
)
from tasks_app.database.work import LOCKED, GroupResult, NotDone, Work
from tasks_app.event_log.exchanges import drop_exchange
from tasks_app.event_log.news import notify
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.registry import put
from tasks_app.event_log.snapshots import Refresh, stale, write_snapshot
from tasks_app.hints import Reached, hints
from tasks_app.models import Task

_TASK = Task._meta.db_table


class Appended(Struct, frozen=True):
    """The task's last sequence number, and whether its snapshot should be refreshed."""

    seq: int
    stale: bool


class Pushing(NotDone, frozen=True):
    """The task has webhooks: the item is asked for again, and writes their deliveries then."""


PUSHING = Pushing()


class Unheard(Struct, frozen=True):
    """A message waits that the run has not looked at, and this was not done."""


UNHEARD = Unheard()

Outcome = Appended | Unheard | NotDone | None


class Append(Work[Appended | Unheard | None], Struct, kw_only=True):
    """Events for one task, and the conditions under which they may be added."""

    lane = "write"

    task_id: str
    events: list[EventRow]
    sources: list[str]
    """The states from which the events may follow."""
    state: str | None
    """The state after them, if they set one."""
    status: str | None
    status_at: datetime | None
    attempt: int | None = None
    """The fence of a run; None for callers and operators, whom no attempt binds."""
    sight: str | None = None
    """From access.sight; None is the server itself."""
    frees: bool = False
    """The lease ends: nobody works on the task any more."""
    tries: int = 0
    """Added to the tries: -1 gives back the try of an agent that was not called."""
    delay: float | None = None
    """Seconds before the task may be claimed, of a task that becomes runnable."""
    after: int | None = None
    """The run's own last event: the item is refused if the run has written another since. So it can be asked for again
    when its connection was lost: it is never written twice."""
    heard: int | None = None
    """Only if no message is newer than this event: else it comes back as UNHEARD. None: whatever waits."""
    wants: str | None = None
    """The wishes of a new message, in stored form; None leaves those of the last one."""
    lease_before: datetime | None = None
    """Only if the lease ended before this: the sweeper's condition."""
    key: KeyRow | None = None
    files: list[FileRow] = []
    run: RunRow | None = None
    exchange: ExchangeRow | None = None
    body: BodyRow | None = None
    snapshot: TaskDocument | None = None
    """The task after these events: stored as its snapshot unless somebody else's events came between."""
    most_size: int | None = None
    """Only if the task then holds no more characters than this, and no more messages than the next."""
    most_messages: int | None = None
    webhook: WebhookRow | None = None
    """Registered with the events, which are delivered to it already."""
    pushing: bool = False
    """Write the deliveries of a task that has webhooks instead of coming back as Pushing."""

    size: int = 0
    """Characters of the events."""
    messages: int = 0
    """How many of the events are messages of the caller."""

    def __post_init__(self) -> None:
        for event in self.events:
            self.size += event.size
            self.messages += event.kind == "message"

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Outcome]:
        return append_many(items)

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[Appended | Unheard | None]]) -> None:
        """Notify followers and dispatchers; have stale snapshots refreshed."""
        done = [(item, result) for item, result in zip(items, results, strict=True) if isinstance(result, Appended)]
        notify([Reached(item.task_id, result.seq, item.state, item.messages > 0) for item, result in done])
        for item, result in done:
            if item.delay is not None:
                hints.offer_in(item.delay)
            if result.stale:
                bridge.put(Refresh(task_id=item.task_id))

    def unique(self) -> str:
        return self.task_id

    def lighten(self) -> bool:
        """Go without the exchange: a change is not undone because its record is refused. The recorder tries again."""
        return drop_exchange(self)


def change(
    task_id: str, context_id: str, events: Sequence[Event], *, now: datetime, actor: str, attempt: int | None = None,
    **more: Any,
) -> Append:  # fmt: skip
    """An item that adds these events; further arguments are those of Append."""
    rows = []
    for place, event in enumerate(events, 1):
        stored = event_document(event, task_id=task_id, context_id=context_id, seq=place)
        rows.append(
            EventRow(
                task_id=task_id, seq=place, kind=stored.kind, payload=stored.payload, state=stored.state, actor=actor,
                created_at=now, attempt=attempt or 0,
            )
        )  # fmt: skip
    status = last_status(events)
    return Append(
        task_id=task_id, events=rows, attempt=attempt,
        # A run that lost its lease must not write between the loss and the next claim.
        sources=sources(events) if attempt is None else [TaskState.WORKING.value],
        state=status.state.value if status else None, status=dumps(encode_status(status)) if status else None,
        status_at=status.timestamp if status else None,
        frees=status is not None and (status.state in QUIET or status.state is TaskState.SUBMITTED), **more,
    )  # fmt: skip


def last_status(events: Sequence[Event]) -> Status | None:
    """The status after the events, if they set one."""
    return next((status for event in reversed(events) if (status := status_of(event))), None)


def sources(events: Sequence[Event]) -> list[str]:
    """The states in which a task may be for these events to follow, by the transition table."""
    allowed = {state for state in TaskState if state not in TERMINAL}
    if (first := next((status.state for event in events if (status := status_of(event))), None)) is not None:
        allowed = {state for state in allowed if first in TRANSITIONS[state]}
    return sorted(allowed)


def append_many(items: Sequence[Append]) -> list[Outcome]:
    """Appends each item; None where its conditions do not hold, Locked where somebody else holds a row that it needs.
    No task may be twice in a group.

    On PostgreSQL a group is one statement, and a transaction only if it has deliveries to write.
    """
    if not on_postgres():
        return _append_sqlite(items)
    if not any(item.pushing for item in items):
        return _append_postgres(items)
    held: frozenset[str] = frozenset()
    while True:
        free = [item for item in items if item.task_id not in held]
        try:
            results = iter(_append_pushing(free) if free else ())
        except Held as error:
            held |= error.tasks
        else:
            return [LOCKED if item.task_id in held else next(results) for item in items]


def _append_pushing(items: Sequence[Append]) -> list[Outcome]:
    """Append with deliveries. Raises Held for tasks that have a webhook whose row is locked."""
    # The cursor first: within a transaction no plan is made anew.
    with prepared() as cursor, transaction.atomic():
        results = _append_postgres(items)
        flagged = [
            (item, result.seq)
            for item, result in zip(items, results, strict=True)
            if item.pushing and isinstance(result, Appended)
        ]
        for item, _ in flagged:
            if item.webhook:
                _register(cursor, item.webhook)
        write_deliveries(cursor, {item.task_id: _numbered(item, seq) for item, seq in flagged})
    return results


def _numbered(item: Append, seq: int) -> list[EventRow]:
    """The events with their numbers in the log; the item keeps those it has, for it may be tried again."""
    first = seq - len(item.events) + 1
    return [replace(event, seq=first + place) for place, event in enumerate(item.events)]


def _register(cursor: CursorWrapper, webhook: WebhookRow) -> None:
    put(cursor, webhook)
    Task.objects.filter(pk=webhook.task_id).update(pushes=True)


# The lock comes first and in id order: updates that lock as they go deadlock. Locked rows are skipped, or one row
# held by somebody else would stall the whole group. The ids are given apart as well: of a recordset PostgreSQL expects
# a hundred rows, and reads the whole table for them.
_APPEND = f"""
with r as (select * from jsonb_to_recordset(%s::jsonb) as x(n bigint, id text, count bigint, sources text[], state text,
        status text, status_at timestamptz, attempt bigint, sight text, frees boolean, tries bigint,
        delay double precision, size bigint, messages bigint, most_size bigint, most_messages bigint, after bigint,
        lease_before timestamptz, wants text, snapshot bigint, artifacts text, history text, pushing boolean,
        message bigint, heard bigint)),
    l as materialized (
        select id, pushes, message_seq from {_TASK} where id = any(%s) order by id for no key update skip locked),
    u as (update {_TASK} t set last_seq = t.last_seq + r.count, state = coalesce(r.state, t.state),
            status = coalesce(r.status, t.status), status_at = coalesce(r.status_at, t.status_at),
            tries = t.tries + r.tries, wants = coalesce(r.wants, t.wants), size = t.size + r.size,
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
            and (r.attempt is null or t.attempt = r.attempt) and (r.sight is null or r.sight = {VISIBLE})
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


def _parts(items: Sequence[Append]) -> list[tuple[Table, list[Any]]]:
    """The further rows that go with the items, table by table."""
    parts: list[tuple[Table, list[Any]]] = [
        (KEYS, [item.key for item in items if item.key]),
        (RUNS, [item.run for item in items if item.run]),
        (EXCHANGES, [item.exchange for item in items if item.exchange]),
        (BODIES, [item.body for item in items if item.body]),
        (FILES, [file for item in items for file in item.files]),
    ]
    return [(table, rows) for table, rows in parts if rows]


def _append_postgres(items: Sequence[Append]) -> list[Outcome]:
    heads = []
    for place, item in enumerate(items):
        for row in (*item.events, *item.files, item.key, item.run, item.exchange, item.body):
            if row is not None:
                row.n = place
        heads.append(
            {
                "n": place, "id": item.task_id, "count": len(item.events), "sources": item.sources, "state": item.state,
                "status": item.status, "status_at": item.status_at, "attempt": item.attempt, "sight": item.sight,
                "frees": item.frees, "tries": item.tries, "delay": item.delay,
                "after": item.after, "lease_before": item.lease_before,
                "wants": item.wants, "pushing": item.pushing, "message": _message(item), "heard": item.heard,
                "size": item.size, "messages": item.messages, "most_size": item.most_size,
                "most_messages": item.most_messages,
            }
            | _snapshot(item.snapshot)
        )  # fmt: skip
    parts = _parts(items)
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


def _message(item: Append) -> int | None:
    """The place of the last message among the events, counted from 1."""
    return next((n for n, event in reversed([*enumerate(item.events, 1)]) if event.kind == "message"), None)


def _outcome(
    item: Append, seq: int | None, snapshot_seq: int, held: bool | None, pushes: bool | None, message_seq: int | None
) -> Outcome:
    if seq is not None:
        return Appended(seq, stale(seq, snapshot_seq, item.state))
    if pushes and not item.pushing:
        item.pushing = True  # For the next time.
        return PUSHING
    if item.heard is not None and message_seq is not None and message_seq > item.heard:
        return UNHEARD
    return LOCKED if held else None


_UPDATE = f"""
update {_TASK} as t set last_seq = last_seq + %s, state = coalesce(%s, state), status = coalesce(%s, status),
    status_at = coalesce(%s, status_at), tries = tries + %s, wants = coalesce(%s, wants),
    size = size + %s, messages = messages + %s,
    lease_owner = case when %s then null else lease_owner end,
    lease_until = case when %s then null else lease_until end, deadline = case when %s then null else deadline end,
    not_before = case when %s then %s else not_before end,
    run_seq = case when %s is null then run_seq else last_seq + %s end,
    message_seq = coalesce(last_seq + %s, message_seq)
where id = %s and (%s is null or attempt = %s) and (%s is null or run_seq = %s) and (%s is null or %s = {VISIBLE})
    and (%s is null or message_seq <= %s) and (%s is null or lease_until < %s)
    and (%s is null or (size + %s <= %s and messages + %s <= %s)) and state in ({{marks}})
returning last_seq, snapshot_seq, pushes, size
"""


def _append_sqlite(items: Sequence[Append]) -> list[Outcome]:
    with transaction.atomic(), prepared() as cursor:
        return [_append_one(cursor, item) for item in items]


def _append_one(cursor: CursorWrapper, item: Append) -> Appended | Unheard | None:
    at = item.status_at and sqlite_time(item.status_at)
    before = item.lease_before and sqlite_time(item.lease_before)
    due = None if item.delay is None else sqlite_time(clock.now() + timedelta(seconds=item.delay))
    cursor.execute(
        _UPDATE.format(marks=", ".join(["%s"] * len(item.sources))),
        (
            len(item.events), item.state, item.status, at, item.tries, item.wants, item.size, item.messages,
            item.frees, item.frees, item.frees,
            item.frees, due, item.after, len(item.events), _message(item),
            item.task_id, item.attempt, item.attempt, item.after, item.after, item.sight, item.sight,
            item.heard, item.heard, before, before,
            item.most_size, item.size, item.most_size, item.messages, item.most_messages, *item.sources,
        ),
    )  # fmt: skip
    found = cursor.fetchone()
    if found is None:
        return _refused(cursor, item)
    seq, snapshot_seq, pushes, size = found
    if item.snapshot is not None and item.snapshot.seq == seq:
        write_snapshot(cursor, item.snapshot)
        snapshot_seq = seq
    events = _numbered(item, seq)
    EVENTS.write(cursor, events)
    for table, rows in _parts([item]):
        table.write(cursor, rows)
    if item.webhook:
        _register(cursor, item.webhook)
    if pushes or item.webhook:
        write_deliveries(cursor, {item.task_id: events})
    return Appended(seq, stale(seq, snapshot_seq, item.state, size))


def _refused(cursor: CursorWrapper, item: Append) -> Unheard | None:
    if item.heard is None:
        return None
    cursor.execute(f"select 1 from {_TASK} where id = %s and message_seq > %s", (item.task_id, item.heard))
    return UNHEARD if cursor.fetchone() else None
