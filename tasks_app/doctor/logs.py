"""Comparison of a task's row with its event log: no gaps, one end, and the log folds to the task in the row."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from django.db import Error
from msgspec import Struct, field

from a2a.dialects.json.json_1_0 import document, dumps, encode_status, event_of
from a2a.documents import EventDocument
from a2a.events import Event as EventValue
from a2a.events import TaskCreated, fold
from a2a.states import TERMINAL
from a2a.types import Task as TaskValue
from tasks_app.database.keyset import older_than
from tasks_app.doctor.finding import REPORT, Finding
from tasks_app.doctor.guard import describe, guard
from tasks_app.doctor.snapshot import snapshot, step
from tasks_app.event_log import ReadTask, read_many
from tasks_app.models import Event, Task

PAGE = 50
"""Tasks examined in one snapshot. While a snapshot is open, the database cannot clean up behind its writers."""
EVENTS = 500
"""Events fetched at a time."""
MOST = 5
"""Events of one task that are named if they are missing or cannot be read."""


class _Log(Struct):
    """The part of a log that has been read."""

    numbers: list[int] = field(default_factory=list)
    """The numbers of the events."""
    ends: list[int] = field(default_factory=list)
    """The numbers of the events that end the task."""
    problems: list[str] = field(default_factory=list)
    """Events that cannot be read, and other reasons why the events make no task."""


def examine_logs(limit: int | None) -> Iterator[Finding | int]:
    """Yield findings about the newest tasks up to the limit and, after each page, the number of tasks examined."""
    count, before = 0, ""
    while limit is None or count < limit:
        size = PAGE if limit is None else min(PAGE, limit - count)
        with snapshot():
            rows = older_than(Task.objects.order_by("-id"), before)
            page = list(rows.values_list("id", flat=True)[:size])
            findings = [finding for id in page for finding in _examine(id)]
        yield from findings
        if not page:
            return
        count, before = count + len(page), page[-1]
        yield count


def _examine(id: str) -> Iterator[Finding]:
    """Return the findings about a task, with one about an examination that fails."""

    def examine() -> Iterator[Finding]:
        with step():  # Each row is read by a statement of its own, because one may be unreadable.
            yield from list(examine_task(Task.objects.get(pk=id)))

    return guard(examine(), f"task {id}", kind="log", subject=id)


def examine_task(row: Task) -> Iterator[Finding]:
    """Yield findings about the log of a task. Call it in a snapshot, so that row and log are of the same moment."""
    log = _Log()
    task = _fold_log(row, log)
    problems = [*_find_gaps(row, log.numbers), *_find_numbers_ahead(row), *log.problems]
    if len(log.ends) > 1 or (log.ends and log.ends[0] != row.last_seq):
        problems.append(f"it ended with event {log.ends[0]}, and has {row.last_seq} events")
    if task is not None and not problems:
        problems += _find_differences(row, task)
    for problem in problems:
        yield Finding(kind="log", subject=row.id, problem=f"The log of task {row.id}: {problem}.", remedy=REPORT)


def _fold_log(row: Task, log: _Log) -> TaskValue | None:
    """Read the log to its end, and return the task that its events fold to; None if they make no task."""
    events = _read_events(row, log)
    first = next((event for event in events if isinstance(event, TaskCreated)), None)
    try:
        task = None if first is None else fold(None, chain([first], events))
        problem = "its log has no event that creates a task"
    except ValueError as error:
        task, problem = None, f"its events make no task: {describe(error)}"
        deque(events, maxlen=0)
    if task is None and not log.problems:
        log.problems.append(problem)
    return task


def _read_events(row: Task, log: _Log) -> Iterator[EventValue]:
    """Yield the events of the log that can be read. Enter the numbers of all of them in `log`."""
    unreadable = 0
    for event in Event.objects.filter(task_id=row.id).order_by("seq").iterator(EVENTS):
        log.numbers.append(event.seq)
        if event.state in TERMINAL:
            log.ends.append(event.seq)
        try:
            value = event_of(_document_of(event))
        except Exception as error:  # noqa: BLE001  # whatever is in the row, the events behind it are examined
            unreadable += 1
            if unreadable <= MOST:
                log.problems.append(f"event {event.seq} cannot be read: {describe(error)}")
        else:
            yield value


def _document_of(event: Event) -> EventDocument:
    return EventDocument(
        task_id=event.task_id,
        context_id="",
        seq=event.seq,
        kind=event.kind,  # type: ignore[arg-type]  # the column holds the kinds that the event log writes
        payload=event.payload,
        state=event.state,
    )


def _find_gaps(row: Task, numbers: Iterable[int]) -> Iterator[str]:
    if list(numbers) != list(range(1, row.last_seq + 1)):
        present = set(numbers)
        missing = [str(seq) for seq in range(1, row.last_seq + 1) if seq not in present]
        beyond = [str(seq) for seq in sorted(present) if seq > row.last_seq]
        if missing:
            yield f"events {', '.join(missing[:MOST])} of {row.last_seq} are missing"
        if beyond:
            yield f"there is an event {beyond[0]}, but the row says that event {row.last_seq} is the last"


def _find_numbers_ahead(row: Task) -> Iterator[str]:
    """Yield columns that name an event beyond the end. Readers would skip the next events up to that of a snapshot."""
    numbers = {
        "snapshot_seq": row.snapshot_seq,
        "joined_seq": row.joined_seq,
        "run_seq": row.run_seq,
        "message_seq": row.message_seq,
    }
    for name, seq in numbers.items():
        if seq is not None and seq > row.last_seq:
            yield f"its {name} is {seq}, but the row says that event {row.last_seq} is the last"


def _find_differences(row: Task, task: TaskValue) -> Iterator[str]:
    """Yield the differences between the folded task and the row, its snapshot included."""
    if row.state != task.status.state.value:
        yield f"by its events it is {task.status.state.value}, but the row says {row.state}"
    if row.status != dumps(encode_status(task.status)):
        yield "its last status is not that of the row"
    try:
        (stored,) = read_many([ReadTask(task_id=row.id, sight=None)])
    except Error:
        raise
    except Exception as error:  # noqa: BLE001  # whatever is in the snapshot, the differences above are findings
        yield f"its snapshot cannot be read: {describe(error)}"
        return
    if stored is None or stored.document != document(task, row.last_seq, row.agent):
        yield "all its events together give another task than its snapshot with the events after it"
