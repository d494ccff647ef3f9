"""Reading a task as it was after one of its events: where a stream that resumes begins.

The fold begins at the nearest of three places: what this process folded for an earlier reader, the stored snapshot, or
the first event. So a task that is at work costs what was added since its snapshot, and a reader that comes again costs
what was added since it last came.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Self

import orjson
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import decode_status, document, event_of
from a2a.documents import EventDocument, TaskDocument
from a2a.events import fold as fold_events
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import SNAPSHOT_SEQ, on_postgres
from tasks_app.database.work import Work
from tasks_app.event_log.columns import SnapshotColumns, columns
from tasks_app.event_log.read import event_row, fold
from tasks_app.models import Event, Task

MOST_EVENTS = 512
MOST_SIZE = 524_288
"""Characters of payload. More than this, or than that many events, is not folded beside the reads of others."""
KEPT_SIZE = 16_777_216
"""Characters of all documents that are kept for later readers."""
_TASK, _EVENT = Task._meta.db_table, Event._meta.db_table


class Long(Struct, frozen=True):
    """There is too much to fold in a group: ask for it alone, with read_as_of."""


LONG = Long()


class ReadAsOf(Work[TaskDocument | Long | None], Struct, frozen=True, kw_only=True):
    """A task as it was after the event of that number."""

    lane = "read"
    repeatable = True

    task_id: str
    context_id: str
    seq: int

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[TaskDocument | Long | None]:
        return read_as_of_many(items)


class Recent:
    """The documents that were folded last, one a task; on any thread."""

    def __init__(self) -> None:
        self.documents: OrderedDict[str, TaskDocument] = OrderedDict()
        self.size = 0
        self.changing = threading.Lock()

    def before(self, item: ReadAsOf) -> TaskDocument | None:
        """Return the document of the task if the asked one follows from it."""
        found = self.documents.get(item.task_id)
        return found if found and found.seq <= item.seq else None

    def keep(self, found: TaskDocument) -> None:
        """A newer one replaces an older one; of all, the oldest go when there is too much."""
        if _size(found) > KEPT_SIZE // 8:
            return
        with self.changing:
            older = self.documents.get(found.id)
            if older and older.seq >= found.seq:
                return
            self._drop(found.id)
            self.documents[found.id] = found
            self.size += _size(found)
            while self.size > KEPT_SIZE:
                self._drop(next(iter(self.documents)))

    def _drop(self, task_id: str) -> None:
        if old := self.documents.pop(task_id, None):
            self.size -= _size(old)

    def clear(self) -> None:
        with self.changing:
            self.documents.clear()
            self.size = 0


recent = Recent()
"""The cache of this process. Events never change, so neither does what they were folded to."""


def read_as_of_many(items: Sequence[ReadAsOf]) -> list[TaskDocument | Long | None]:
    """Fold the log of each up to the number; None if there is no such log, LONG if that is too much in a group."""
    begun = _beginnings(items)
    open_ = [place for place, (start, last) in begun.items() if 0 < last - _seq(start) <= MOST_EVENTS]
    tails = _tails([(items[place], _seq(begun[place][0]), begun[place][1]) for place in open_])
    rest = dict(zip(open_, tails, strict=True))
    return [_result(item, begun.get(place), rest.get(place, [])) for place, item in enumerate(items)]


def _result(
    item: ReadAsOf, begun: tuple[TaskDocument | None, int] | None, tail: list[EventDocument]
) -> TaskDocument | Long | None:
    if begun is None:
        return None
    start, last = begun
    if _seq(start) + len(tail) < last:
        return LONG
    return _folded(start, [replace(event, context_id=item.context_id) for event in tail])


def read_as_of(item: ReadAsOf) -> TaskDocument | None:
    """Fold the log up to the number, however much that is; None if there is no such log."""
    if (begun := _beginnings([item]).get(0)) is None:
        return None
    start, _ = begun
    rows = Event.objects.filter(task_id=item.task_id, seq__gt=_seq(start), seq__lte=item.seq).order_by("seq")
    fields = rows.values_list("seq", "kind", "payload", "state")
    tail = [event_row(item.task_id, item.context_id, *row) for row in fields.iterator(chunk_size=2_000)]
    return _folded(start, tail) if start or tail else None


def _folded(start: TaskDocument | None, tail: Sequence[EventDocument]) -> TaskDocument:
    if start is not None and not tail:
        return start
    found = fold(start, tail) if start else document(fold_events(None, map(event_of, tail)), tail[-1].seq)
    recent.keep(found)
    return found


def _seq(start: TaskDocument | None) -> int:
    return start.seq if start else 0


def _size(found: TaskDocument) -> int:
    return len(found.artifacts or "") + len(found.history or "") + len(found.metadata or "") + 1_000


_BEGIN_POSTGRES = f"""
select r.place - 1, t.last_seq, s.*
from unnest(%s::text[], %s::bigint[], %s::bigint[]) with ordinality r(id, seq, known, place)
join {_TASK} t on t.id = r.id
left join lateral (select {columns(SnapshotColumns._fields)}
    where {SNAPSHOT_SEQ} > r.known and t.snapshot_seq <= r.seq) s on true
where t.id = any(%s)
"""
_BEGIN_SQLITE = f"""
select t.last_seq, {columns(SnapshotColumns._fields, "s.")} from {_TASK} t
left join {_TASK} s on s.id = t.id and {SNAPSHOT_SEQ} > %s and s.snapshot_seq <= %s where t.id = %s
"""


def _beginnings(items: Sequence[ReadAsOf]) -> dict[int, tuple[TaskDocument | None, int]]:
    """By place: where to begin, and the last event to fold. Tasks that are not there are left out."""
    kept = [recent.before(item) for item in items]
    with prepared() as cursor:
        if on_postgres():
            ids = [item.task_id for item in items]
            cursor.execute(_BEGIN_POSTGRES, (ids, [item.seq for item in items], [_seq(one) for one in kept], ids))
            rows = list(cursor.fetchall())
        else:
            rows = []
            for place, item in enumerate(items):
                cursor.execute(_BEGIN_SQLITE, (_seq(kept[place]), item.seq, item.task_id))
                rows += [(place, *row) for row in cursor.fetchall()]
    return {
        place: (_stored(items[place], SnapshotColumns._make(snapshot)) or kept[place], min(items[place].seq, last))
        for place, last, *snapshot in rows
    }


def _stored(item: ReadAsOf, row: SnapshotColumns) -> TaskDocument | None:
    """Return the snapshot, if there is one to begin with."""
    if not row.snapshot_seq:
        return None
    return TaskDocument(
        id=item.task_id, context_id=item.context_id, seq=row.snapshot_seq,
        state=decode_status(orjson.loads(row.snapshot_status)).state.value, status=row.snapshot_status,
        metadata=row.metadata, artifacts=row.artifacts, history=row.history,
    )  # fmt: skip


_SIZED = f"select seq, kind, payload, state, sum(size) over (order by seq) - size as before from {_EVENT}"
_TAILS_POSTGRES = f"""
select r.place - 1, e.seq, e.kind, e.payload, e.state
from unnest(%s::text[], %s::bigint[], %s::bigint[]) with ordinality r(id, after, last, place) cross join lateral (
    select * from ({_SIZED} where task_id = r.id and seq > r.after and seq <= r.last order by seq) s
    where before < {MOST_SIZE}) e
order by r.place, e.seq
"""
_TAIL_SQLITE = f"""
select seq, kind, payload, state from ({_SIZED} where task_id = %s and seq > %s and seq <= %s order by seq)
where before < {MOST_SIZE} order by seq
"""


def _tails(wanted: Sequence[tuple[ReadAsOf, int, int]]) -> list[list[EventDocument]]:
    """The events of each (item, after, up to), as many as are not too large together."""
    out: list[list[EventDocument]] = [[] for _ in wanted]
    if not wanted:
        return out
    with prepared() as cursor:
        if on_postgres():
            ids, afters, lasts = zip(*((item.task_id, after, last) for item, after, last in wanted), strict=True)
            cursor.execute(_TAILS_POSTGRES, (list(ids), list(afters), list(lasts)))
            for place, *event in cursor.fetchall():
                out[place].append(event_row(ids[place], "", *event))
            return out
        for place, (item, after, last) in enumerate(wanted):
            cursor.execute(_TAIL_SQLITE, (item.task_id, after, last))
            out[place] = [event_row(item.task_id, "", *event) for event in cursor.fetchall()]
    return out
