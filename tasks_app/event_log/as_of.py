"""Reads a task as of one of its events, which is where a stream that resumes begins.

The fold begins at the nearest of three places: a document that this process folded for an earlier reader, the stored
snapshot, or the first event. So a task at work costs the events since its snapshot, and a reader that comes again costs
the events since its last visit.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Self

import orjson
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import decode_status, document, event_of
from a2a.documents import EventDocument, TaskDocument
from a2a.events import fold as fold_events
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Work
from tasks_app.event_log.columns import SNAPSHOT_SEQ, SnapshotColumns, columns
from tasks_app.event_log.read import fold
from tasks_app.event_log.read_events import SIZES, first_rows, stored_event
from tasks_app.models import Event, Task

MOST_EVENTS = 512
"""Events that are folded beside the reads of others, at most."""
MOST_SIZE = 524_288
"""Characters of payload that are folded beside the reads of others, at most."""
CACHE_SIZE = 16_777_216
"""Characters of all documents that are cached for later readers, at most."""
_TASK, _EVENT = Task._meta.db_table, Event._meta.db_table


class Long(Struct, frozen=True):
    """The result for a log that is too long to fold in a group: call read_as_of for this task alone."""


LONG = Long()


class ReadAsOf(Work[TaskDocument | Long | None], Struct, frozen=True, kw_only=True):
    """A read of a task as of the event `seq`."""

    lane = "read"
    repeatable = True

    task_id: str
    context_id: str
    seq: int

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[TaskDocument | Long | None]:
        return read_as_of_many(items)


class Recent:
    """A cache of documents, one for each task, that drops the oldest. Any thread may use it."""

    def __init__(self) -> None:
        self.documents: OrderedDict[str, TaskDocument] = OrderedDict()
        self.size = 0
        self.lock = threading.Lock()

    def before(self, item: ReadAsOf) -> TaskDocument | None:
        """Return the document of the task if it is as of the item's event or an earlier one."""
        document = self.documents.get(item.task_id)
        return document if document and document.seq <= item.seq else None

    def keep(self, document: TaskDocument) -> None:
        """Cache a document unless a newer one of its task is cached."""
        if _size(document) > CACHE_SIZE // 8:
            return
        with self.lock:
            other = self.documents.get(document.id)
            if other and other.seq >= document.seq:
                return
            self._drop(document.id)
            self.documents[document.id] = document
            self.size += _size(document)
            while self.size > CACHE_SIZE:
                self._drop(next(iter(self.documents)))

    def _drop(self, task_id: str) -> None:
        if old := self.documents.pop(task_id, None):
            self.size -= _size(old)

    def clear(self) -> None:
        with self.lock:
            self.documents.clear()
            self.size = 0


recent = Recent()
"""The cache of this process. Its documents stay right, because events never change."""


class _Base(NamedTuple):
    """The place where a fold begins, and the event where it ends."""

    document: TaskDocument | None
    """None for the first event of the log."""
    last: int
    agent: str
    """The agent of the task."""

    @property
    def seq(self) -> int:
        return _seq(self.document)


def read_as_of_many(items: Sequence[ReadAsOf]) -> list[TaskDocument | Long | None]:
    """Fold the log of each task up to the event; None for a log that does not exist, LONG for one that is too long."""
    bases = _bases(items)
    short = [place for place, base in bases.items() if 0 < base.last - base.seq <= MOST_EVENTS]
    tails = dict(zip(short, _tails([(items[place], bases[place]) for place in short]), strict=True))
    return [_result(item, bases.get(place), tails.get(place, [])) for place, item in enumerate(items)]


def _result(item: ReadAsOf, base: _Base | None, tail: list[EventDocument]) -> TaskDocument | Long | None:
    if base is None:
        return None
    if base.seq + len(tail) < base.last:
        return LONG
    return _fold_on(base, [replace(event, context_id=item.context_id) for event in tail])


def read_as_of(item: ReadAsOf) -> TaskDocument | None:
    """Fold the log up to the event, however long it is; None if the log does not exist."""
    if (base := _bases([item]).get(0)) is None:
        return None
    rows = Event.objects.filter(task_id=item.task_id, seq__gt=base.seq, seq__lte=item.seq).order_by("seq")
    fields = rows.values_list("seq", "kind", "payload", "state")
    tail = [stored_event(item.task_id, item.context_id, *row) for row in fields.iterator(chunk_size=2_000)]
    return _fold_on(base, tail) if base.document or tail else None


def _fold_on(base: _Base, tail: Sequence[EventDocument]) -> TaskDocument:
    before = base.document
    if before is not None and not tail:
        return before
    task = fold(before, tail) if before else document(fold_events(None, map(event_of, tail)), tail[-1].seq, base.agent)
    recent.keep(task)
    return task


def _seq(base: TaskDocument | None) -> int:
    return base.seq if base else 0


def _size(task: TaskDocument) -> int:
    return task.size + len(task.metadata or "") + 1_000


# The snapshot is read if it is nearer to the event than the cached document, and not after it.
_BASES_POSTGRES = f"""
select r.place - 1, t.last_seq, t.agent, s.*
from unnest(%s::text[], %s::bigint[], %s::bigint[]) with ordinality r(id, seq, known, place)
join {_TASK} t on t.id = r.id
left join lateral (select {columns(SnapshotColumns._fields)}
    where {SNAPSHOT_SEQ} > r.known and t.snapshot_seq <= r.seq) s on true
where t.id = any(%s)
"""
_BASE_SQLITE = f"""
select t.last_seq, t.agent, {columns(SnapshotColumns._fields, "s.")} from {_TASK} t
left join {_TASK} s on s.id = t.id and {SNAPSHOT_SEQ} > %s and s.snapshot_seq <= %s where t.id = %s
"""


def _bases(items: Sequence[ReadAsOf]) -> dict[int, _Base]:
    """Return the base of each fold by the place of its item. Tasks that do not exist are left out."""
    cached = [recent.before(item) for item in items]
    with prepared() as cursor:
        if on_postgres():
            ids = [item.task_id for item in items]
            cursor.execute(_BASES_POSTGRES, (ids, [item.seq for item in items], [_seq(one) for one in cached], ids))
            rows = list(cursor.fetchall())
        else:
            rows = []
            for place, item in enumerate(items):
                cursor.execute(_BASE_SQLITE, (_seq(cached[place]), item.seq, item.task_id))
                rows += [(place, *row) for row in cursor.fetchall()]
    return {
        place: _Base(
            _snapshot(items[place], agent, SnapshotColumns._make(snapshot)) or cached[place],
            min(items[place].seq, last),
            agent,
        )
        for place, last, agent, *snapshot in rows
    }


def _snapshot(item: ReadAsOf, agent: str, row: SnapshotColumns) -> TaskDocument | None:
    """Return the snapshot if it is nearer than the cached document."""
    if not row.snapshot_seq:
        return None
    return TaskDocument(
        id=item.task_id,
        context_id=item.context_id,
        seq=row.snapshot_seq,
        state=decode_status(orjson.loads(row.snapshot_status)).state.value,
        status=row.snapshot_status,
        metadata=row.metadata,
        artifacts=row.artifacts,
        history=row.history,
        agent=agent,
    )


_TAILS_POSTGRES = f"""
select r.place - 1, e.seq, e.kind, e.payload, e.state
from unnest(%s::text[], %s::bigint[], %s::bigint[]) with ordinality r(id, after, last, place) cross join lateral (
    select * from ({SIZES} where task_id = r.id and seq > r.after and seq <= r.last order by seq) s
    where before < {MOST_SIZE}) e
order by r.place, e.seq
"""
_TAIL_SQLITE = f"""
select size, seq, kind, payload, state from {_EVENT} where task_id = %s and seq > %s and seq <= %s order by seq
"""


def _tails(folds: Sequence[tuple[ReadAsOf, _Base]]) -> list[list[EventDocument]]:
    """Return the events after each base up to its last event. A tail is cut off at MOST_SIZE."""
    out: list[list[EventDocument]] = [[] for _ in folds]
    if not folds:
        return out
    with prepared() as cursor:
        if on_postgres():
            ids, afters, lasts = zip(*((item.task_id, base.seq, base.last) for item, base in folds), strict=True)
            cursor.execute(_TAILS_POSTGRES, (list(ids), list(afters), list(lasts)))
            for place, *event in cursor.fetchall():
                out[place].append(stored_event(ids[place], "", *event))
            return out
        for place, (item, base) in enumerate(folds):
            cursor.execute(_TAIL_SQLITE, (item.task_id, base.seq, base.last))
            out[place] = [stored_event(item.task_id, "", *event) for event in first_rows(cursor, MOST_SIZE)]
    return out
