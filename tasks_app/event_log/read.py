"""Reading tasks, in groups. A task is its row plus the events after its snapshot."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from a2a import events
from a2a.dialects.json.json_1_0 import document, event_of, task_of
from a2a.documents import EventDocument, EventKind, TaskDocument
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import VISIBLE, one_of, sight_of
from tasks_app.database.work import DoAlone, Elsewhere, GroupResult, Work
from tasks_app.event_log.columns import TaskColumns, columns, is_small, task_columns
from tasks_app.event_log.long_history import with_long_history
from tasks_app.event_log.read_events import read_tails
from tasks_app.models import Task


class TaskRead(Struct, frozen=True, kw_only=True):
    """A task's document, with the columns of its row that callers do not get."""

    document: TaskDocument
    agent: str
    owner_id: int
    tenant_id: int
    fence: int
    attempt: int
    max_attempts: int
    timeout: float
    wants: str
    pushes: bool
    run_seq: int
    """The last event that the newest run wrote, or was claimed with; 0 before the first."""
    size: int
    """Characters of the payloads of its events."""
    limit: int | None
    """The most that the task may cost, in millionths of a dollar: its budget, or what stored budgets gave it if that is
    less; None without a limit."""
    spent: int
    """The sum of the reports of its runs, in millionths."""
    reserved: int
    """The amount that stored budgets hold for it; 0 if they hold nothing."""


class Head(Struct, frozen=True):
    """The columns of a task's row that cost the same however large the task is."""

    task_id: str
    context_id: str
    seq: int
    state: str
    agent: str
    owner_id: int
    tenant_id: int
    attempt: int
    size: int
    messages: int
    budget: int | None
    """The most that its caller lets the task cost, in millionths of a dollar; None without a limit."""
    reserved: int
    spent: int


class ReadHead(Work[Head | None], Struct, frozen=True, kw_only=True):
    """A read of the head of a task's row, without artifacts and history."""

    lane = "read"
    repeatable = True

    task_id: str
    sight: str | None
    """The result of access.sight for the caller; None for the server itself, which sees all tasks."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Head | None]:
        return read_heads_many(items)


class ReadTask(Work[TaskRead | None], Struct, frozen=True, kw_only=True):
    """A read of a task as of its last event."""

    lane = "read"
    repeatable = True

    task_id: str
    sight: str | None
    """The result of access.sight for the caller; None for the server itself, which sees all tasks."""

    history: bool = True
    """True for a task with its messages, which may be many megabytes."""
    is_owed: bool = False
    """True for the answer to a change or a wait, which the limit on an owner's large reads must not refuse."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[TaskRead | None]]:
        """Read the tasks, but no text of a large one: that is read alone, where its owner takes turns with others."""
        pairs = zip(items, read_many(items, small=True), strict=True)
        return [_alone(item, read.owner_id) if read and not is_small(read.size) else read for item, read in pairs]


class ReadOrMeasure(Work[TaskRead | int | None], Struct, frozen=True):
    """A look at a task as of its last event. Of a large one it gives the size alone, for which a reader makes room."""

    lane = "read"
    repeatable = True

    read: ReadTask

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[TaskRead | int | None]:
        reads = read_many([item.read for item in items], small=True)
        return [read if read is None or is_small(read.size) else read.size for read in reads]


_HEAD = columns(Head.__struct_fields__, task_id="t.id", seq="t.last_seq", attempt="t.tries")
_ARTIFACT: EventKind = "artifactUpdate"
_TASK = Task._meta.db_table


def _alone(item: ReadTask, owner_id: int) -> Elsewhere:
    return Elsewhere(DoAlone(partial(_read_large, item), None if item.is_owed else owner_id))


def _read_large(item: ReadTask) -> TaskRead | None:
    """Read a large task; its history is put together from the log."""
    read = read_many([replace(item, history=False)])[0]
    return replace(read, document=with_long_history(read.document)) if read and item.history else read


def read_many(items: Sequence[ReadTask], *, small: bool = False) -> list[TaskRead | None]:
    """Return each task as of its last event; None for a task that does not exist or that the caller may not see.

    A history is read only if an item of the group asks for it. With `small`, no texts of a large task are read.
    """
    brief = {item.task_id for item in items if not item.history}
    if not brief:
        reads = _whole(items, small)
    else:
        brief.difference_update(item.task_id for item in items if item.history)
        whole = [item for item in items if item.task_id not in brief]
        reads = _brief([item for item in items if item.task_id in brief], small)
        if whole:
            reads |= _whole(whole, small)
    return [_visible(reads.get(item.task_id), item) for item in items]


def _whole(items: Sequence[ReadTask], small: bool) -> dict[str, TaskRead]:
    rows = _task_rows(task_columns(only_small=small), items)
    tails = read_tails(_tails(rows, small))
    return {row.id: read_of(row, tails.get(row.id, ())) for row in rows}


def _tails(rows: Sequence[TaskColumns], small: bool) -> list[tuple[str, int, int]]:
    """Return the bounds of the tails to read."""
    tails = [row for row in rows if row.has_tail and (not small or is_small(row.size))]
    return [(row.id, row.snapshot_seq, row.last_seq) for row in tails]


def _brief(items: Sequence[ReadTask], small: bool) -> dict[str, TaskRead]:
    """Read tasks without their histories. The row has the newest status, so of the tail only artifacts are read."""
    rows = _task_rows(task_columns(only_small=small, history=False), items)
    tails = read_tails(_tails(rows, small), f"and kind = '{_ARTIFACT}'")
    reads = {}
    for row in rows:
        read = read_of(row, ())
        if tail := tails.get(row.id):
            base = read.document if row.snapshot_seq else replace(read.document, artifacts="[]")
            artifacts = fold(base, tail).artifacts
            read = replace(read, document=replace(read.document, artifacts=artifacts))
        reads[row.id] = read
    return reads


def run_seq(task_id: str, fence: int) -> int | None:
    """Return the last event that the run with the fence wrote, or was claimed with; None after another claim."""
    return Task.objects.filter(pk=task_id, fence=fence).values_list("run_seq", flat=True).first()


def read_heads_many(items: Sequence[ReadHead]) -> list[Head | None]:
    """Read the heads of tasks: however much a task holds, this costs a row of a few columns."""
    heads = {head.task_id: head for head in (Head(*row) for row in _rows(_HEAD, items))}
    return [_visible(heads.get(item.task_id), item) for item in items]


def _task_rows(columns: str, items: Sequence[ReadHead | ReadTask]) -> list[TaskColumns]:
    return [TaskColumns._make(row) for row in _rows(columns, items)]


def _rows(columns: str, items: Sequence[ReadHead | ReadTask]) -> list[tuple[Any, ...]]:
    """Return the rows of the tasks that some item of the group may see."""
    open_ids = [item.task_id for item in items if item.sight is None]
    sights = [item.sight for item in items if item.sight is not None]
    visible, values = _visibility(sights, open_ids)
    where, more = one_of("t.id", [item.task_id for item in items])
    with prepared() as cursor:
        cursor.execute(f"select {columns} from {_TASK} t where {where} and {visible}", [*more, *values])
        return list(cursor.fetchall())


def _visibility(sights: Sequence[str], open_ids: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the SQL of the condition that a caller, or the server itself, may see the task, and its parameters."""
    if not open_ids:
        return one_of(VISIBLE, sights)
    of_callers, values = one_of(VISIBLE, sights)
    of_server, more = one_of("t.id", open_ids)
    return f"({of_callers} or {of_server})", [*values, *more]


AnyRead = TypeVar("AnyRead", TaskRead, Head)


def _visible(read: AnyRead | None, item: ReadHead | ReadTask) -> AnyRead | None:
    """Return the read if the item's caller may see it: the server and a stranger may ask for one task in one group."""
    if read is None or item.sight is None:
        return read
    return read if item.sight == sight_of(item.task_id, read.tenant_id, read.owner_id) else None


def read_of(row: TaskColumns, tail: Sequence[EventDocument]) -> TaskRead:
    """Return the task of a row and the events after its snapshot."""
    task = TaskDocument(
        id=row.id,
        context_id=row.context_id,
        seq=row.last_seq,
        state=row.state,
        status=row.status,
        metadata=row.metadata,
        artifacts=row.artifacts,
        history=row.history,
        agent=row.agent,
    )
    if tail:
        task = fold(replace(task, status=row.snapshot_status), tail)
    return TaskRead(
        document=task,
        agent=row.agent,
        owner_id=row.owner_id,
        tenant_id=row.tenant_id,
        fence=row.fence,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        timeout=row.timeout,
        wants=row.wants,
        pushes=bool(row.pushes),
        run_seq=row.run_seq or 0,
        size=row.size,
        limit=min((limit for limit in (row.budget, row.share) if limit is not None), default=None),
        spent=row.spent,
        reserved=row.reserved,
    )


def fold(snapshot: TaskDocument, tail: Sequence[EventDocument]) -> TaskDocument:
    """Return the document of a task after the events that follow its snapshot."""
    return document(events.fold(task_of(snapshot), map(event_of, tail)), tail[-1].seq, snapshot.agent)


def read_snapshot(task_id: str) -> tuple[TaskDocument, int]:
    """Return the task as of its snapshot, and the number of its last event. A snapshot as of 0 must not be used."""
    (row,) = _task_rows(task_columns(), [ReadHead(task_id=task_id, sight=None)])
    snapshot = TaskDocument(
        id=row.id,
        context_id=row.context_id,
        seq=row.snapshot_seq,
        state="",
        status=row.snapshot_status,
        metadata=row.metadata,
        artifacts=row.artifacts,
        history=row.history,
        agent=row.agent,
    )
    return snapshot, row.last_seq
