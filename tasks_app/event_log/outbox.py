"""What leaves the log: deliveries, written in the transaction of their events, for the webhooks that a task has.

A task says in its row whether it has any. Only then is there anything to do here, under the row's lock, which every
change of its webhooks takes too: an event before a registration has no delivery (but the one that was the end), an
event after it has one.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.utils import CursorWrapper
from msgspec.structs import replace

from a2a.dialects import BY_VERSION
from a2a.dialects.protojson import document, event_of, task_of
from a2a.documents import EventDocument, TaskDocument
from a2a.events import apply
from a2a.types import Task as TaskValue
from tasks_app import clock
from tasks_app.event_log.locks import Held
from tasks_app.event_log.read import ReadAsOf, one_of, read_as_of, read_snapshot, read_tails
from tasks_app.hints import hints
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, PushConfig, Task
from tasks_app.rows import DELIVERIES, DeliveryRow, EventRow, WebhookRow, on_postgres, sqlite_time

log = logging.getLogger(__name__)
_CONFIG = PushConfig._meta.db_table


def deliveries(
    webhooks: Sequence[tuple[str, str]],
    events: Sequence[EventDocument],
    as_of: Callable[[int], TaskDocument],
    now: datetime,
) -> list[DeliveryRow]:
    """A row for each event and each (config, version) whose version has something to say about it."""
    rows = []
    for event in events:
        for config_id, version in webhooks:
            body = _body(version, event, as_of)
            if body is not None:
                rows.append(
                    DeliveryRow(
                        id=uuid7(), config_id=config_id, task_id=event.task_id, seq=event.seq, version=version,
                        body=body.decode(), created_at=now,
                    )
                )  # fmt: skip
    return rows


def _body(version: str, event: EventDocument, as_of: Callable[[int], TaskDocument]) -> bytes | None:
    """What cannot be told must not undo what happened."""
    try:
        return BY_VERSION[version].encode_push(event, partial(as_of, event.seq))
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        log.exception("event %s/%d cannot be told in A2A %s: it is not delivered", event.task_id, event.seq, version)
        return None


# The rows are locked before the deliveries are written: a webhook that is switched off at this moment either
# comes first and is not found, or comes after them and finds them.
_DUE_SQLITE = (
    f"update {_CONFIG} set due_at = coalesce(due_at, %s) where {{where}} and state = 'active' "
    "returning id, task_id, version"
)
# One that somebody else holds has no version here.
_DUE_POSTGRES = f"""
with w as (select id, task_id from {_CONFIG} where task_id = any(%(tasks)s) and state = 'active'),
    l as materialized (select id from {_CONFIG} where task_id = any(%(tasks)s) and state = 'active'
        order by id for no key update skip locked),
    u as (update {_CONFIG} c set due_at = coalesce(c.due_at, %(now)s) from l where c.id = l.id
        returning c.id, c.version)
select w.id, w.task_id, u.version from w left join u using (id)
"""


def write_deliveries(cursor: CursorWrapper, events: Mapping[str, Sequence[EventRow]]) -> None:
    """In the transaction of these events, which are in the log with their numbers, task by task. Raises Held."""
    if not events:
        return
    now = clock.shared()
    webhooks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for config_id, task_id, version in _due(cursor, list(events), now):
        webhooks[task_id].append((config_id, version))
    rows: list[DeliveryRow] = []
    contexts = dict(Task.objects.filter(id__in=list(webhooks)).values_list("id", "context_id"))
    for task_id, own in webhooks.items():
        documents = [
            EventDocument(
                task_id=task_id, context_id=contexts[task_id], seq=row.seq, kind=row.kind, payload=row.payload,  # type: ignore[arg-type]
                state=row.state,
            )
            for row in events[task_id]
        ]  # fmt: skip
        rows += deliveries(own, documents, _Past(task_id).as_of, now)
    DELIVERIES.write(cursor, rows)
    # A delivery that nobody hears of waits for the next look.
    transaction.on_commit(hints.due)


def _due(cursor: CursorWrapper, task_ids: list[str], now: datetime) -> list[tuple[str, str, str]]:
    """The webhooks of the tasks, each locked and due: (id, task, version). Raises Held."""
    if not on_postgres():
        where, ids = one_of("task_id", task_ids)
        cursor.execute(_DUE_SQLITE.format(where=where), [sqlite_time(now), *ids])
        return list(cursor.fetchall())
    cursor.execute(_DUE_POSTGRES, {"tasks": task_ids, "now": now})
    rows = list(cursor.fetchall())
    if held := {task_id for _, task_id, version in rows if version is None}:
        raise Held("somebody else holds a webhook", held)
    return rows


def write_end(cursor: CursorWrapper, webhook: WebhookRow, context_id: str, seq: int, *, moved: bool) -> None:
    """The event with which the task has ended, for a webhook that came after it, or has another address since. The
    task's row is locked."""
    known = Delivery.objects.filter(config_id=webhook.id, seq=seq)
    if known.filter(state__in=["waiting"] if moved else ["waiting", "delivered"]).exists():
        return
    task_id, now = webhook.task_id, clock.shared()
    end = [replace(event, context_id=context_id) for event in read_tails([(task_id, seq - 1, seq)])[task_id]]
    for row in deliveries([(webhook.id, webhook.version)], end, _Past(task_id).as_of, now):
        # An event has one delivery for each id: what became of it with the webhook that had the id before is over.
        if not known.update(state="waiting", done_at=None, created_at=now, version=row.version, body=row.body):
            DELIVERIES.write(cursor, [row])
    PushConfig.objects.filter(pk=webhook.id).update(due_at=now)
    transaction.on_commit(hints.due)


class _Past:
    """A task as it was after each of its newest events, read when it is first asked for."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.known: dict[int, TaskValue] = {}

    def as_of(self, seq: int) -> TaskDocument:
        if not self.known:
            self._read()
        if seq in self.known:
            return document(self.known[seq], seq)
        # A run that was short has brought its snapshot with these events; its log is short too.
        found = read_as_of(ReadAsOf(task_id=self.task_id, context_id="", seq=seq))
        if found is None:
            raise LookupError(f"task {self.task_id} has no event {seq}")
        return found

    def _read(self) -> None:
        """The snapshot, and what comes after it."""
        stored, last = read_snapshot(self.task_id)
        task = self.known[stored.seq] = task_of(stored)
        for event in read_tails([(self.task_id, stored.seq, last)]).get(self.task_id, ()):
            self.known[event.seq] = task = apply(task, event_of(event))
