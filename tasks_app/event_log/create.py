"""New tasks and direct replies, in groups: key, task, events and exchange become durable together."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from django.db import transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from a2a.states import RUNNABLE
from tasks_app import clock
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import (
    BODIES,
    DELIVERIES,
    DIRECT_REPLIES,
    EVENTS,
    EXCHANGES,
    FILES,
    KEYS,
    NEW_KEYS,
    RUNS,
    TASKS,
    WEBHOOKS,
    BodyRow,
    DeliveryRow,
    DirectReplyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    Row,
    RunRow,
    Table,
    TaskRow,
    WebhookRow,
    as_json,
    on_postgres,
)
from tasks_app.database.work import LOCKED, GroupResult, Locked, Work
from tasks_app.event_log.exchanges import drop_exchange
from tasks_app.event_log.read import one_of
from tasks_app.hints import hints


class KeyTarget(Struct, frozen=True, kw_only=True):
    """The message id was used before: for this."""

    fingerprint: str
    task_id: str | None
    reply_id: str | None


class FindKey(Work[KeyTarget | None], Struct, frozen=True, kw_only=True):
    """Look up the task or reply that a message id of an owner stands for."""

    lane = "read"
    repeatable = True

    owner_id: int
    key: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[KeyTarget | None]:
        return find_key_many(items)


class Create(Work[KeyTarget | None], Struct, kw_only=True):
    """A task with its first events, or a direct reply without a task."""

    lane = "write"
    repeatable = True

    key: KeyRow
    task: TaskRow | None = None
    events: list[EventRow] = []
    files: list[FileRow] = []
    reply: DirectReplyRow | None = None
    run: RunRow | None = None
    webhook: WebhookRow | None = None
    deliveries: list[DeliveryRow] = []
    """Deliveries of its first events to that webhook."""
    exchange: ExchangeRow | None = None
    body: BodyRow | None = None

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[KeyTarget | Locked | None]:
        return create_many(items)

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[KeyTarget | None]]) -> None:
        """Notify dispatchers alone: a new task has no followers yet."""
        new = [item.task for item, result in zip(items, results, strict=True) if result is None and item.task]
        if queues := frozenset({task.queue for task in new if task.state in RUNNABLE}):
            hints.offer(queues)
        if any(item.deliveries for item in items):
            hints.due()

    def unique(self) -> tuple[int, str]:
        return self.key.owner_id, self.key.key

    def lighten(self) -> bool:
        """Go without the exchange: a change is not undone because its record is refused. The recorder tries again."""
        return drop_exchange(self)


def create_many(items: Sequence[Create]) -> list[KeyTarget | Locked | None]:
    """Store each item whose key is new; for the others, return what the key stands for. No key may be twice in a group.

    A key that was there at the insert and is gone at the look was forgotten in between: the item is LOCKED, to be asked
    for again.
    """
    won = _create_postgres(items) if on_postgres() else _create_sqlite(items)
    lost = [item for place, item in enumerate(items) if place not in won]
    if not lost:
        return [None] * len(items)
    known = find_key_many([FindKey(owner_id=item.key.owner_id, key=item.key.key) for item in lost])
    found = iter([_own(item, key) for item, key in zip(lost, known, strict=True)])
    return [None if place in won else next(found) for place in range(len(items))]


def find_key_many(items: Sequence[FindKey]) -> list[KeyTarget | None]:
    """Return what each key stands for; None for a new one."""
    owners, owner_ids = one_of("owner_id", sorted({item.owner_id for item in items}))
    keys, names = one_of("key", [item.key for item in items])
    with prepared() as cursor:
        cursor.execute(
            f"select owner_id, key, fingerprint, task_id, turn_id from {KEYS.name} where {owners} and {keys}",
            [*owner_ids, *names],
        )
        found = {
            (owner_id, key): KeyTarget(fingerprint=print_of, task_id=task_id, reply_id=reply_id)
            for owner_id, key, print_of, task_id, reply_id in cursor.fetchall()
        }
    return [found.get((item.owner_id, item.key)) for item in items]


def _own(item: Create, found: KeyTarget | None) -> KeyTarget | Locked | None:
    if found is None:
        return LOCKED
    # A group whose commit was in doubt is tried again; what it finds may be its own.
    own = (found.task_id, found.reply_id) == (item.key.task_id, item.key.turn_id)
    return None if own else found


_TABLES = (TASKS, EVENTS, DIRECT_REPLIES, RUNS, WEBHOOKS, DELIVERIES, EXCHANGES, BODIES, FILES)


def _rows(items: Sequence[Create]) -> list[tuple[Table, list[Row]]]:
    tasks: list[Row] = [item.task for item in items if item.task]
    events: list[Row] = [event for item in items for event in item.events]
    replies: list[Row] = [item.reply for item in items if item.reply]
    runs: list[Row] = [item.run for item in items if item.run]
    webhooks: list[Row] = [item.webhook for item in items if item.webhook]
    deliveries: list[Row] = [delivery for item in items for delivery in item.deliveries]
    exchanges: list[Row] = [item.exchange for item in items if item.exchange]
    bodies: list[Row] = [item.body for item in items if item.body]
    files: list[Row] = [file for item in items for file in item.files]
    found = (tasks, events, replies, runs, webhooks, deliveries, exchanges, bodies, files)
    return list(zip(_TABLES, found, strict=True))


@cache
def _statement(tables: tuple[Table, ...]) -> str:
    """One statement: the keys first and in order (unordered ones deadlock), the rest for the winners only."""
    ordered = "order by x.owner_id, x.key"
    keys = NEW_KEYS.insert(ordered, "on conflict do nothing returning owner_id, key")
    won = f"select x.n from jsonb_to_recordset(%s::jsonb) as x({NEW_KEYS.record}) join k using (owner_id, key)"
    rest = "".join(f", t{n} as ({table.insert('join won using (n)')})" for n, table in enumerate(tables))
    return f"with k as ({keys}), won as ({won}){rest} select n from won"


def _create_postgres(items: Sequence[Create]) -> set[int]:
    if due := [item.webhook for item in items if item.webhook and item.webhook.due_at]:
        now = clock.shared()
        for webhook in due:
            webhook.due_at = now
    for place, item in enumerate(items):
        one = (item.key, item.task, item.reply, item.run, item.webhook, item.exchange, item.body)
        for row in (*one, *item.events, *item.deliveries, *item.files):
            if row is not None:
                row.n = place
    filled = [(table, rows) for table, rows in _rows(items) if rows]
    keys = as_json([item.key for item in items])
    with prepared() as cursor:
        cursor.execute(
            _statement(tuple(table for table, _ in filled)), (keys, keys, *(as_json(rows) for _, rows in filled))
        )
        return {place for (place,) in cursor.fetchall()}


def _create_sqlite(items: Sequence[Create]) -> set[int]:
    with transaction.atomic(), prepared() as cursor:
        won = {place for place, item in enumerate(items) if NEW_KEYS.write_one(cursor, item.key)}
        _write(cursor, [item for place, item in enumerate(items) if place in won])
    return won


def _write(cursor: CursorWrapper, items: Sequence[Create]) -> None:
    for table, rows in _rows(items):
        table.write(cursor, rows)
