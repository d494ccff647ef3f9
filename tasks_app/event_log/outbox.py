"""Deliveries are written in the transaction of their events, for the webhooks that a task has.

A task's row says whether it has webhooks. Only then is there anything to do here, under the row's lock, which every
change of its webhooks takes too: an event before a registration has no delivery (except the end), an event after it
has one. A row says only which event goes to which webhook: bodies.py makes the body when it is tried.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from django.db import transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import astuple

from a2a import languages
from a2a.documents import EventKind
from a2a.languages import push_of
from a2a.states import QUIET
from tasks_app import clock
from tasks_app.database.locks import Held
from tasks_app.database.rows import DELIVERIES, DeliveryRow, EventRow, WebhookRow, on_postgres, sqlite_time
from tasks_app.event_log.moves import set_state
from tasks_app.hints import hints
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, DeliveryTry, Event, PushConfig
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.models.webhooks import LANGUAGE, language_of
from tasks_app.sealing import has_same_url

GROWTH = 4
"""A whole body is sent for an interim event once the log has grown by one in so many of the bytes of the last body.
So all bodies together are linear in the size of the log."""
TELLINGS = 10
"""Addresses that one webhook of an ended task may tell the end to, one after the other."""
HEARD_OR_WAITING = (DeliveryState.WAITING, DeliveryState.DELIVERED)
"""The states of a delivery that its receiver has or will get."""
_CONFIG = PushConfig._meta.db_table


def deliveries(webhook: str, language: str, events: Sequence[EventRow], now: datetime) -> list[DeliveryRow]:
    """Return a row for each event of which webhooks of the language hear."""
    (push, version), rows = push_of(language), []
    for event in events:
        if push.has(event.kind, event.state):
            interim = push.whole_task and event.kind == "statusUpdate" and event.state not in QUIET
            rows.append(
                DeliveryRow(
                    id=uuid7(), config_id=webhook, task_id=event.task_id, seq=event.seq, version=version,
                    language=language, created_at=now, interim=interim,
                )
            )  # fmt: skip
    return rows


class _News(Struct, kw_only=True):
    """The meaning of a task's new events for its webhooks of one language."""

    task_id: str
    language: str
    bytes: int
    pushed: bool
    """There is a delivery."""
    firm: bool
    """There is one that no later one supersedes."""


def _news(task_id: str, language: str, events: Sequence[EventRow], now: datetime) -> _News:
    rows = deliveries("", language, events, now)
    firm = not all(row.interim for row in rows)
    size = sum(event.size for event in events)
    return _News(task_id=task_id, language=language, bytes=size, pushed=bool(rows), firm=firm)


# 1. Lock the webhooks before their deliveries are written: a webhook that is switched off at this moment either comes
#    first and is not found, or comes after the deliveries and finds them. A row that another transaction has locked
#    is marked in the last column. A row without a language is of one that this process does not speak.
# 2. Count what the log has grown by.
# 3. Make the webhook due. A gap after a failed try stays as it is. A rest (due_at = rests_until) ends early for a
#    delivery that nothing supersedes, and once the log has grown enough.
_LOUD = f"(n.firm or c.rests_until is null or {GROWTH} * (c.grown + n.bytes) >= c.body_bytes)"
_SET = f"""grown = c.grown + n.bytes,
    due_at = case when not n.pushed then c.due_at
        when c.due_at is null and {_LOUD} then %s
        when c.due_at is null then {{greatest}}(%s, c.rests_until)
        when c.due_at = c.rests_until and {_LOUD} then {{least}}(c.due_at, %s)
        else c.due_at end"""
_DUE_POSTGRES = f"""
with n as (select * from jsonb_to_recordset(%s::jsonb)
        as x(task_id text, language text, bytes bigint, pushed boolean, firm boolean)),
    w as (select id, task_id from {_CONFIG} where task_id = any(%s) and state = '{WebhookState.ACTIVE}'),
    l as materialized (select id from {_CONFIG} where task_id = any(%s) and state = '{WebhookState.ACTIVE}'
        order by id for no key update skip locked),
    u as (update {_CONFIG} c set {_SET.format(greatest="greatest", least="least")}
        from l, n where c.id = l.id and n.task_id = c.task_id and n.language = {LANGUAGE.format("c.")}
        returning c.id, n.language, c.due_at)
select w.id, w.task_id, u.language, u.due_at <= %s, l.id is null
from w left join l using (id) left join u using (id)
"""
_DUE_SQLITE = f"""
update {_CONFIG} as c set {_SET.format(greatest="max", least="min")}
from (select column1 as task_id, column2 as language, column3 as bytes, column4 as pushed, column5 as firm
    from (values {{rows}})) as n
where c.task_id = n.task_id and n.language = {LANGUAGE.format("c.")} and c.state = '{WebhookState.ACTIVE}'
returning id, task_id, {LANGUAGE.format("")}, due_at <= %s
"""


def write_deliveries(cursor: CursorWrapper, events: Mapping[str, Sequence[EventRow]]) -> None:
    """Write the deliveries of these events, task by task, in the transaction that gave the events their numbers.

    Raises Held.
    """
    if not events:
        return
    now = clock.shared()
    rows: list[DeliveryRow] = []
    soon = False
    for config_id, task_id, language, due in _due(cursor, events, now):
        own = deliveries(config_id, language, events[task_id], now)
        soon = soon or bool(own and due)
        rows += own
    DELIVERIES.write(cursor, rows)
    if soon:
        # A lost hint costs latency only: the sender looks by itself.
        transaction.on_commit(hints.due)


_Due = tuple[str, str, str, bool]


def _due(cursor: CursorWrapper, events: Mapping[str, Sequence[EventRow]], now: datetime) -> list[_Due]:
    """Lock the webhooks of the tasks and make them due: (id, task, language, whether it is due now). Raises Held."""
    spoken = languages.ALL.pushing
    news = [_news(task_id, name, own, now) for task_id, own in events.items() for name in spoken]
    rows: list[_Due]
    if not on_postgres():
        stamp = sqlite_time(now)
        marks = ", ".join(["(%s, %s, %s, %s, %s)"] * len(news))
        values = [value for one in news for value in astuple(one)]
        cursor.execute(_DUE_SQLITE.format(rows=marks), [stamp, stamp, stamp, *values, stamp])
        rows = list(cursor.fetchall())
        return rows
    tasks = list(events)
    cursor.execute(_DUE_POSTGRES, [encode(news).decode(), tasks, tasks, now, now, now, now])
    found = cursor.fetchall()
    if held := {task_id for _, task_id, _, _, is_locked in found if is_locked}:
        raise Held("another transaction has locked a webhook", held)
    return [row[:4] for row in found if row[2] is not None]


def write_end(cursor: CursorWrapper, webhook: WebhookRow, seq: int, *, moved: bool) -> None:
    """Write the delivery of the event that ended the task, for a webhook that was registered, or has moved, since.

    The task's row is locked. An address hears of an end once, however often it is registered and removed in turn.
    """
    known = Delivery.objects.filter(config_id=webhook.id, seq=seq)
    if known.filter(state__in=[DeliveryState.WAITING] if moved else HEARD_OR_WAITING).exists():
        return
    task_id, now = webhook.task_id, clock.shared()
    if _has_heard(task_id, seq, webhook) or _tellings(known) >= TELLINGS:
        return
    kind, state = Event.objects.values_list("kind", "state").get(task_id=task_id, seq=seq)
    end = EventRow(
        task_id=task_id, seq=seq, kind=cast(EventKind, kind), payload="", state=state, actor="", created_at=now
    )
    for row in deliveries(webhook.id, language_of(webhook.version, webhook.language), [end], now):
        # An event has one delivery for each id: what became of it with the webhook that had the id before is over.
        written = {"version": row.version, "language": row.language, "created_at": now}
        if not set_state(known, DeliveryState.WAITING, done_at=None, body=None, **written):
            DELIVERIES.write(cursor, [row])
    PushConfig.objects.filter(pk=webhook.id).update(due_at=now)
    transaction.on_commit(hints.due)


def _has_heard(task_id: str, seq: int, webhook: WebhookRow) -> bool:
    """Return whether a webhook that was removed since has brought the event to this address: to register and remove
    in turn under ever new ids sends nothing more. Of webhooks that stand side by side each has its own delivery."""
    same = {"version": webhook.version} if webhook.version else {"language": webhook.language}
    others = Delivery.objects.filter(task_id=task_id, seq=seq, config__host=webhook.host, **same)
    removed = others.filter(state__in=HEARD_OR_WAITING, config__state=WebhookState.REMOVED)
    removed = removed.exclude(config_id=webhook.id)
    return any(has_same_url(other.config, webhook) for other in removed.select_related("config"))


def _tellings(known: QuerySet[Delivery]) -> int:
    """Return how often the delivery was acknowledged: each time at another address of the webhook."""
    return DeliveryTry.objects.filter(delivery_id__in=known.values("pk"), status__gte=200, status__lt=300).count()
