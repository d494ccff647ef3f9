"""Reading events, in groups: pages for readers of a log, tails behind snapshots, and how far tasks have come."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Self, cast

import orjson
from msgspec import Struct

from a2a.documents import EventDocument, EventKind
from a2a.states import TaskState
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres, one_of
from tasks_app.database.work import Work
from tasks_app.hints import Reached
from tasks_app.models import Event, Task

PAGE = 100
"""Events read at once."""
PAGE_SIZE = 262_144
"""Characters of payload read at once, at most; one event is read whatever its size."""
_TASK, _EVENT = Task._meta.db_table, Event._meta.db_table


class ReadEvents(Work[list[EventDocument]], Struct, frozen=True, kw_only=True):
    """A read of a page of a task's events after a sequence number."""

    lane = "read"
    repeatable = True

    task_id: str
    after: int
    context_id: str
    most: int = PAGE_SIZE
    """Characters of payload with which the page ends."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[EventDocument]]:
        return read_events_many(items)


class LastEvents(Work[list[Reached]], Struct, frozen=True):
    """A read of the last sequence numbers and states of tasks, for readers that missed a hint."""

    lane = "read"
    repeatable = True

    task_ids: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[Reached]]:
        return last_events_many(items)


def read_tails(tails: Sequence[tuple[str, int, int]], such: str = "") -> dict[str, list[EventDocument]]:
    """Return the events of each (task, after, up to), both bounds from one read of its row. `such` is SQL."""
    if not tails:
        return {}
    bounds = {task_id: (after, last) for task_id, after, last in tails}
    where, values = one_of("task_id", list(bounds))
    lowest = min(after for after, _ in bounds.values())
    out: dict[str, list[EventDocument]] = defaultdict(list)
    with prepared() as cursor:
        cursor.execute(
            f"select task_id, seq, kind, payload, state from {_EVENT} where {where} and seq > %s {such} "
            "order by task_id, seq",
            [*values, lowest],
        )
        for task_id, seq, kind, payload, state in cursor.fetchall():
            after, last = bounds[task_id]
            if after < seq <= last:
                out[task_id].append(stored_event(task_id, "", seq, kind, payload, state))
    return out


def stored_event(
    task_id: str,
    context_id: str,
    seq: int,
    kind: str,
    payload: str,
    state: str | None,
    at: datetime | str | None = None,
) -> EventDocument:
    """Return the document of an event; the log holds kinds of events only. SQLite gives times as text."""
    event = cast(EventKind, kind)
    if isinstance(at, str):
        at = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return EventDocument(
        task_id=task_id, context_id=context_id, seq=seq, kind=event, payload=payload, state=state, at=at
    )


# A page ends at PAGE events or at a number of characters: a slow reader must not keep a page of large events in memory.
SIZES = f"select seq, kind, payload, state, created_at, sum(size) over (order by seq) - size as before from {_EVENT}"
"""SQL for events on PostgreSQL, each with the characters of those before it. It reads no long payload for that."""
_LATERAL = f"""
select r.place, e.seq, e.kind, e.payload, e.state, e.created_at
from unnest(%s::text[], %s::bigint[], %s::bigint[]) with ordinality r(id, after, most, place) cross join lateral (
    select * from ({SIZES} where task_id = r.id and seq > r.after order by seq limit {PAGE}) s
    where before < r.most) e
order by r.place, e.seq
"""
_ONE = f"""
select size, seq, kind, payload, state, created_at from {_EVENT}
where task_id = %s and seq > %s order by seq limit {PAGE}
"""


def first_rows(rows: Iterable[Sequence[Any]], most: int) -> Iterator[Sequence[Any]]:
    """Yield rows, whose first column is a size, without it. Stop after the row that makes up `most`.

    SQLite reads a row when its cursor is asked for it. A sum in the statement would read the payloads of all of them
    first.
    """
    size = 0
    for row in rows:
        size += row[0]
        yield row[1:]
        if size >= most:
            return


def read_events_many(items: Sequence[ReadEvents]) -> list[list[EventDocument]]:
    """Return a page of events for each item."""
    out: list[list[EventDocument]] = [[] for _ in items]
    with prepared() as cursor:
        if on_postgres():
            ids, afters = [item.task_id for item in items], [item.after for item in items]
            cursor.execute(_LATERAL, (ids, afters, [item.most for item in items]))
            for place, *event in cursor.fetchall():
                item = items[place - 1]
                out[place - 1].append(stored_event(item.task_id, item.context_id, *event))
            return out
        for place, item in enumerate(items):
            cursor.execute(_ONE, (item.task_id, item.after))
            events = first_rows(cursor, item.most)
            out[place] = [stored_event(item.task_id, item.context_id, *event) for event in events]
    return out


def last_events_many(items: Sequence[LastEvents]) -> list[list[Reached]]:
    """Return the last sequence number and the state of each task that exists."""
    ids = sorted({task_id for item in items for task_id in item.task_ids})
    where, values = one_of("id", ids)
    with prepared() as cursor:
        cursor.execute(f"select id, last_seq, state from {_TASK} where {where}", values)
        ends = {task_id: Reached(task_id, seq, state) for task_id, seq, state in cursor.fetchall()}
    return [[ends[task_id] for task_id in item.task_ids if task_id in ends] for item in items]


def seq_after_questions(task_id: str, seq: int) -> int:
    """Return the number of the event after the last question, of those since an event, that was answered; the number of
    that event itself if none was."""
    changes = Event.objects.filter(task_id=task_id, seq__gte=seq, state__isnull=False).order_by("-seq")
    present = changes.values_list("seq", flat=True).first() or seq
    questions = changes.filter(seq__lt=present, state=TaskState.INPUT_REQUIRED.value)
    question = questions.values_list("seq", flat=True).first()
    return seq if question is None else question + 1


def seq_of_message(task_id: str, message_id: str) -> int:
    """Return the number of the event that stored a message: the first event if no later one did."""
    rows = Event.objects.filter(task_id=task_id, kind="message").order_by("seq").values_list("seq", "payload")
    for seq, payload in rows:
        if orjson.loads(payload)["message"]["messageId"] == message_id:
            return seq
    return 1
