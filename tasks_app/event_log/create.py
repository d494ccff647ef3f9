"""New tasks and direct replies, in groups: key, task, events and exchange are committed together."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Self

from django.db import transaction
from msgspec import Struct

from a2a.states import RUNNABLE
from tasks_app import clock
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import (
    AuditRow,
    BodyRow,
    DeliveryRow,
    DirectReplyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    ReservationRow,
    Row,
    RunRow,
    SecretRow,
    TaskRow,
    UsageRow,
    WebhookRow,
)
from tasks_app.database.sql import on_postgres, one_of
from tasks_app.database.tables import (
    AUDIT,
    BODIES,
    DELIVERIES,
    DIRECT_REPLIES,
    EVENTS,
    EXCHANGES,
    FILES,
    KEYS,
    NEW_KEYS,
    RESERVATIONS,
    RUNS,
    SECRETS,
    TASKS,
    USAGE,
    WEBHOOKS,
    Table,
    as_json,
)
from tasks_app.database.work import LOCKED, GroupResult, Locked, Work
from tasks_app.event_log.exchanges import drop_exchange
from tasks_app.event_log.tallies import count_new
from tasks_app.hints import DueRows, hints
from tasks_app.limits.quotas import quota


class KeyTarget(Struct, frozen=True, kw_only=True):
    """The task or direct reply that a message id stands for."""

    fingerprint: str
    task_id: str | None
    reply_id: str | None


class FindKey(Work[KeyTarget | None], Struct, frozen=True, kw_only=True):
    """A look-up of what a message id of an owner stands for."""

    lane = "read"
    repeatable = True

    owner_id: int
    key: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[KeyTarget | None]:
        return find_key_many(items)


class FindKeyLast(FindKey, frozen=True, kw_only=True):
    """A look-up that waits for the earlier writes of this process, one of which may store the key."""

    lane = "write"


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
    entry: AuditRow | None = None
    """The entry of the audit. Unlike the exchange it is never dropped: no change is stored without it."""
    reservations: list[ReservationRow] = []
    secret: SecretRow | None = None
    """The secrets of its message, for its agent."""
    usage: UsageRow | None = None
    """Its row in the usage history."""

    @property
    def stored_bytes(self) -> int:
        """The size of what it stores, as far as it counts towards the quota."""
        size = self.task.size if self.task else 0
        if self.reply:
            size += len(self.reply.message) + len(self.reply.reply)
        return size + sum(file.size for file in self.files)

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[KeyTarget | Locked | None]:
        return create_many(items)

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[KeyTarget | None]]) -> None:
        """Count the new tasks and the stored bytes, and notify dispatchers alone: a new task has no readers yet."""
        new = [item.task for item, result in zip(items, results, strict=True) if result is None and item.task]
        count_new(new)
        for item, result in zip(items, results, strict=True):
            if result is None:
                quota.add(item.key.owner_id, item.stored_bytes)
        if queues := frozenset({task.queue for task in new if task.state in RUNNABLE}):
            hints.offer(queues)
        if any(item.deliveries for item in items):
            hints.due(DueRows.DELIVERIES)

    def unique(self) -> tuple[int, str]:
        return self.key.owner_id, self.key.key

    def lighten(self) -> bool:
        """Drop the exchange and the usage: a refused record must not undo the change. Their recorders store them
        again."""
        had_usage, self.usage = self.usage is not None, None
        return drop_exchange(self) or had_usage


def create_many(items: Sequence[Create]) -> list[KeyTarget | Locked | None]:
    """Store each item whose key is new; for the others, return what the key stands for. No key may be twice in a group.

    A key that the insert met and the look-up does not find was deleted in between. The result is LOCKED, so that the
    bridge asks for the item again.
    """
    return results_of(items, write_new(items))


def write_new(items: Sequence[Create]) -> set[int]:
    """Store each item whose key is new; return their places."""
    return create_postgres(items) if on_postgres() else _create_sqlite(items)


def results_of(items: Sequence[Create], winners: Collection[int]) -> list[KeyTarget | Locked | None]:
    """Return the results of items, some of which were stored."""
    losers = [item for place, item in enumerate(items) if place not in winners]
    if not losers:
        return [None] * len(items)
    targets = find_key_many([FindKey(owner_id=item.key.owner_id, key=item.key.key) for item in losers])
    results = iter([_result(item, target) for item, target in zip(losers, targets, strict=True)])
    return [None if place in winners else next(results) for place in range(len(items))]


def find_key_many(items: Sequence[FindKey]) -> list[KeyTarget | None]:
    """Return what each key stands for; None for a new one."""
    owners, owner_ids = one_of("owner_id", sorted({item.owner_id for item in items}))
    keys, names = one_of("key", [item.key for item in items])
    with prepared() as cursor:
        cursor.execute(
            f"select owner_id, key, fingerprint, task_id, turn_id from {KEYS.name} where {owners} and {keys}",
            [*owner_ids, *names],
        )
        targets = {
            (owner_id, key): KeyTarget(fingerprint=print_of, task_id=task_id, reply_id=reply_id)
            for owner_id, key, print_of, task_id, reply_id in cursor.fetchall()
        }
    return [targets.get((item.owner_id, item.key)) for item in items]


def _result(item: Create, target: KeyTarget | None) -> KeyTarget | Locked | None:
    """Return the result of an item whose key exists already."""
    if target is None:
        return LOCKED
    # A group whose commit was in doubt is done again, so that the key may be its own.
    is_own = (target.task_id, target.reply_id) == (item.key.task_id, item.key.turn_id)
    return None if is_own else target


def _rows(items: Sequence[Create]) -> list[tuple[Table, Sequence[Row]]]:
    """Return the rows of the items apart from the keys, table by table."""
    parts: list[tuple[Table, Sequence[Row]]] = [
        (TASKS, [item.task for item in items if item.task]),
        (EVENTS, [event for item in items for event in item.events]),
        (DIRECT_REPLIES, [item.reply for item in items if item.reply]),
        (RUNS, [item.run for item in items if item.run]),
        (WEBHOOKS, [item.webhook for item in items if item.webhook]),
        (DELIVERIES, [delivery for item in items for delivery in item.deliveries]),
        (EXCHANGES, [item.exchange for item in items if item.exchange]),
        (BODIES, [item.body for item in items if item.body]),
        (AUDIT, [item.entry for item in items if item.entry]),
        (FILES, [file for item in items for file in item.files]),
        (RESERVATIONS, [row for item in items for row in item.reservations]),
        (SECRETS, [item.secret for item in items if item.secret]),
        (USAGE, [item.usage for item in items if item.usage]),
    ]
    return [(table, rows) for table, rows in parts if rows]


@cache
def _statement(tables: tuple[Table, ...], more: str) -> str:
    """Return the one statement of a group.

    1. k: insert the keys, in their order: groups that insert in different orders deadlock.
    2. won: the items whose key was inserted.
    3. t0, t1, ...: insert the rows of those items, table by table.
    4. What `more` adds, which is about those items as well.
    """
    order = "order by x.owner_id, x.key"
    keys = NEW_KEYS.insert(order, "on conflict do nothing returning owner_id, key")
    winners = f"select x.n from jsonb_to_recordset(%s::jsonb) as x({NEW_KEYS.record}) join k using (owner_id, key)"
    inserts = [table.insert("join won using (n)", table.conflict) for table in tables]
    rest = "".join(f", t{n} as ({insert})" for n, insert in enumerate(inserts))
    return f"with k as ({keys}), won as ({winners}){rest}{more} select n from won"


def create_postgres(items: Sequence[Create], more: str = "", values: Sequence[Any] = ()) -> set[int]:
    """Store the items whose key is new; return their places. `more` is SQL of further parts of the statement, with
    their values."""
    if due := [item.webhook for item in items if item.webhook and item.webhook.due_at]:
        now = clock.shared()
        for webhook in due:
            webhook.due_at = now
    for place, item in enumerate(items):
        one = (item.key, item.task, item.reply, item.run, item.webhook, item.exchange, item.body, item.entry)
        for row in (*one, item.secret, item.usage, *item.events, *item.deliveries, *item.files, *item.reservations):
            if row is not None:
                row.n = place
    parts = _rows(items)
    keys = as_json([item.key for item in items])
    with prepared() as cursor:
        cursor.execute(
            _statement(tuple(table for table, _ in parts), more),
            (keys, keys, *(as_json(rows) for _, rows in parts), *values),
        )
        return {place for (place,) in cursor.fetchall()}


def _create_sqlite(items: Sequence[Create]) -> set[int]:
    """Store the items whose key is new; return their places."""
    with transaction.atomic(), prepared() as cursor:
        winners = {place for place, item in enumerate(items) if NEW_KEYS.write_one(cursor, item.key)}
        for table, rows in _rows([item for place, item in enumerate(items) if place in winners]):
            table.write(cursor, rows)
    return winners
