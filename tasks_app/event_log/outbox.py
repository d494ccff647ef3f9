"""The outbox: deliveries are written in the transaction of their events.

A task's row says whether the task has webhooks. Only then is there anything to do here, under the lock of that row,
which registrations and removals take too. So an event before a registration has no delivery (except the event that ends
the task), and an event after it has one. A delivery's row says which event goes to which webhook: bodies.py makes the
body when the delivery is tried.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from django.db import transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import astuple

from a2a import languages
from a2a.documents import EventKind
from a2a.language import Push
from a2a.languages import push_of
from a2a.notices import EVERYTHING, bits_of
from a2a.states import QUIET
from tasks_app import clock
from tasks_app.database.locks import LockRefused
from tasks_app.database.rows import DeliveryRow, EventRow, WebhookRow
from tasks_app.database.sql import on_postgres, sqlite_time
from tasks_app.database.tables import DELIVERIES
from tasks_app.event_log.moves import set_state
from tasks_app.hints import DueRows, hints
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, DeliveryTry, Event, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.models.webhooks import LANGUAGE, language_of
from tasks_app.sealing import has_same_url

GROWTH = 4
"""An interim event gets a whole body once the log has grown by this fraction (one in GROWTH) of the last body. So the
bytes of all bodies together are linear in the size of the log."""
END_ADDRESSES = 10
"""Addresses to which one webhook of an ended task may send the end, one after the other."""
END_WEBHOOKS = 100
"""Webhooks of an ended task that may get the end. A webhook that is removed leaves its row to its deliveries, and each
registration looks at these rows."""
END_TRIES = 100
"""Tries after which the end of a task that is over is sent to no other address of its webhook. A delivery that waits
keeps its task, so a caller could keep it for ever, with ever more tries."""
DELIVERED_OR_WAITING = (DeliveryState.WAITING, DeliveryState.DELIVERED)
"""The states of a delivery that its receiver has or will get."""
_WEBHOOKS = Webhook._meta.db_table


def deliveries(
    webhook: str, language: str, events: Sequence[EventRow], now: datetime, notices: int | None = None
) -> list[DeliveryRow]:
    """Return a delivery for each event that webhooks of the language with this filter get."""
    push, version = push_of(language)
    choice = EVERYTHING if notices is None else notices
    return [
        DeliveryRow(
            id=uuid7(),
            webhook_id=webhook,
            task_id=event.task_id,
            seq=event.seq,
            version=version,
            language=language,
            created_at=now,
            interim=_is_interim(event, push),
        )
        for event in events
        if _bits(event, push) & choice
    ]


def _bits(event: EventRow, push: Push) -> int:
    """Return the filter for the kinds of changes that an event is to webhooks of the language.

    It is 0 for an event without a delivery, and lets all events pass in a language without filters.
    """
    if not push.has(event.kind, event.state):
        return 0
    return bits_of(event.kind, event.state, event.payload) if push.filters else EVERYTHING


def _is_interim(event: EventRow, push: Push) -> bool:
    """Return whether a later delivery says all that the delivery of this event says."""
    return push.whole_task and event.kind == "statusUpdate" and event.state not in QUIET


class _News(Struct, kw_only=True):
    """A task's new events, as its webhooks of one language get them. The members are columns of the statement."""

    task_id: str
    language: str
    bytes: int
    pushes: int
    """The filter for the events that have a delivery; 0 if there is none."""
    firm: int
    """The filter for those of them whose delivery no later one supersedes."""


def _news(task_id: str, language: str, events: Sequence[EventRow]) -> _News:
    push, _ = push_of(language)
    pushes = firm = 0
    for event in events:
        bits = _bits(event, push)
        pushes |= bits
        firm |= 0 if _is_interim(event, push) else bits
    size = sum(event.size for event in events)
    return _News(task_id=task_id, language=language, bytes=size, pushes=pushes, firm=firm)


# 1. n: the new events of each task, by language.
# 2. w, l: lock the active webhooks of the tasks before their deliveries are written. A transaction that disables a
#    webhook at this moment either commits first, and the webhook is not found here, or comes later and finds the
#    deliveries. The last column of the result is true for a row that another transaction has locked.
#    Filters are compared bit by bit: an event that no filter lets pass makes no webhook due.
# 3. u: count the bytes by which the log has grown, and make the webhook due. The gap after a failed attempt stays as it
#    is. A rest (due_at = rests_until) ends early for a delivery that nothing supersedes, and once the log has grown
#    enough.
# 4. Return the webhooks. A row without a language belongs to a language that this process does not speak.
_FILTER = f"coalesce(c.notices, {EVERYTHING})"
_LOUD = f"(n.firm & {_FILTER} <> 0 or c.rests_until is null or {GROWTH} * (c.grown + n.bytes) >= c.body_bytes)"
_SET = f"""grown = c.grown + n.bytes,
    due_at = case when n.pushes & {_FILTER} = 0 then c.due_at
        when c.due_at is null and {_LOUD} then %s
        when c.due_at is null then {{greatest}}(%s, c.rests_until)
        when c.due_at = c.rests_until and {_LOUD} then {{least}}(c.due_at, %s)
        else c.due_at end"""
_DUE_POSTGRES = f"""
with n as (select * from jsonb_to_recordset(%s::jsonb)
        as x(task_id text, language text, bytes bigint, pushes bigint, firm bigint)),
    w as (select id, task_id from {_WEBHOOKS} where task_id = any(%s) and state = '{WebhookState.ACTIVE}'),
    l as materialized (select id from {_WEBHOOKS} where task_id = any(%s) and state = '{WebhookState.ACTIVE}'
        order by id for no key update skip locked),
    u as (update {_WEBHOOKS} c set {_SET.format(greatest="greatest", least="least")}
        from l, n where c.id = l.id and n.task_id = c.task_id and n.language = {LANGUAGE.format("c.")}
        returning c.id, n.language, c.notices, c.due_at)
select w.id, w.task_id, u.language, u.notices, u.due_at <= %s, l.id is null
from w left join l using (id) left join u using (id)
"""
_DUE_SQLITE = f"""
update {_WEBHOOKS} as c set {_SET.format(greatest="max", least="min")}
from (select column1 as task_id, column2 as language, column3 as bytes, column4 as pushes, column5 as firm
    from (values {{rows}})) as n
where c.task_id = n.task_id and n.language = {LANGUAGE.format("c.")} and c.state = '{WebhookState.ACTIVE}'
returning id, task_id, {LANGUAGE.format("")}, notices, due_at <= %s
"""


def write_deliveries(cursor: CursorWrapper, events: Mapping[str, Sequence[EventRow]]) -> None:
    """Write the deliveries of these events, by task, in the transaction that gave the events their numbers.

    Raises LockRefused if another transaction has locked a webhook.
    """
    if not events:
        return
    now = clock.shared()
    rows: list[DeliveryRow] = []
    any_now = False
    for webhook in _due(cursor, events, now):
        own = deliveries(webhook.id, webhook.language, events[webhook.task_id], now, webhook.notices)
        any_now = any_now or bool(own and webhook.is_now)
        rows += own
    DELIVERIES.write(cursor, rows)
    if any_now:
        # A lost hint costs latency only: the sender also polls.
        transaction.on_commit(partial(hints.due, DueRows.DELIVERIES))


class _Due(NamedTuple):
    """A webhook that was made due."""

    id: str
    task_id: str
    language: str
    notices: int | None
    is_now: bool
    """Whether it is due now, not at a later time."""


class _Webhook(NamedTuple):
    """A row of the statement for PostgreSQL."""

    id: str
    task_id: str
    language: str | None
    notices: int | None
    is_now: bool
    is_locked: bool


def _due(cursor: CursorWrapper, events: Mapping[str, Sequence[EventRow]], now: datetime) -> list[_Due]:
    """Lock the webhooks of the tasks and make them due. Raises LockRefused."""
    names = languages.ALL.pushing
    news = [_news(task_id, name, own) for task_id, own in events.items() for name in names]
    if not on_postgres():
        stamp = sqlite_time(now)
        marks = ", ".join(["(%s, %s, %s, %s, %s)"] * len(news))
        values = [value for one in news for value in astuple(one)]
        cursor.execute(_DUE_SQLITE.format(rows=marks), [stamp, stamp, stamp, *values, stamp])
        return [_Due._make(row) for row in cursor.fetchall()]
    tasks = list(events)
    cursor.execute(_DUE_POSTGRES, [encode(news).decode(), tasks, tasks, now, now, now, now])
    rows = [_Webhook._make(row) for row in cursor.fetchall()]
    if locked := {row.task_id for row in rows if row.is_locked}:
        raise LockRefused("another transaction has locked a webhook", locked)
    return [
        _Due(row.id, row.task_id, row.language, row.notices, row.is_now) for row in rows if row.language is not None
    ]


def write_end(cursor: CursorWrapper, webhook: WebhookRow, seq: int, *, has_new_address: bool) -> None:
    """Write the delivery of the event that ended the task, for a webhook that was registered, or got another address,
    after that event.

    The caller has locked the task's row. An address gets the end once, however often a webhook for it is registered and
    removed in turn, and END_WEBHOOKS get it at most.
    """
    existing = Delivery.objects.filter(webhook_id=webhook.id, seq=seq)
    if existing.filter(state__in=[DeliveryState.WAITING] if has_new_address else DELIVERED_OR_WAITING).exists():
        return
    task_id, now = webhook.task_id, clock.shared()
    if Delivery.objects.filter(task_id=task_id, seq=seq).exclude(webhook_id=webhook.id).count() >= END_WEBHOOKS:
        return
    if _has_delivered(task_id, seq, webhook) or _count_deliveries(existing) >= END_ADDRESSES:
        return
    if existing.filter(attempt__gte=END_TRIES).exists():
        return
    kind, state, payload = Event.objects.values_list("kind", "state", "payload").get(task_id=task_id, seq=seq)
    end = EventRow(
        task_id=task_id, seq=seq, kind=cast(EventKind, kind), payload=payload, state=state, actor="", created_at=now
    )
    for row in deliveries(webhook.id, language_of(webhook.version, webhook.language), [end], now, webhook.notices):
        # An event has one delivery for each webhook id. This one replaces that of the webhook that had the id before.
        columns = {"version": row.version, "language": row.language, "created_at": now}
        if not set_state(existing, DeliveryState.WAITING, done_at=None, body=None, **columns):
            DELIVERIES.write(cursor, [row])
    Webhook.objects.filter(pk=webhook.id).update(due_at=now)
    transaction.on_commit(partial(hints.due, DueRows.DELIVERIES))


def _has_delivered(task_id: str, seq: int, webhook: WebhookRow) -> bool:
    """Return whether a webhook that was removed since has delivered the event to this address.

    So a caller who registers and removes webhooks in turn, under ever new ids, has nothing more sent. Webhooks that
    exist at the same time have a delivery each.
    """
    same = {"version": webhook.version} if webhook.version else {"language": webhook.language}
    others = Delivery.objects.filter(task_id=task_id, seq=seq, webhook__host=webhook.host, **same)
    others = others.filter(state__in=DELIVERED_OR_WAITING, webhook__state=WebhookState.REMOVED)
    others = others.exclude(webhook_id=webhook.id)
    return any(has_same_url(other.webhook, webhook) for other in others.select_related("webhook"))


def _count_deliveries(existing: QuerySet[Delivery]) -> int:
    """Return how many times the delivery was acknowledged: each time at another address of the webhook."""
    return DeliveryTry.objects.filter(delivery_id__in=existing.values("pk"), status__gte=200, status__lt=300).count()
