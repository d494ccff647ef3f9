"""Comparison of a task's row with its event log: no gaps, one end, and the log folds to the task in the row."""

from collections.abc import Iterable, Iterator
from itertools import chain

from a2a.dialects.json.json_1_0 import document, dumps, encode_status, event_of
from a2a.documents import EventDocument
from a2a.events import Event as EventValue
from a2a.events import TaskCreated, fold
from a2a.states import TERMINAL
from a2a.types import Task as TaskValue
from tasks_app.database.keyset import older_than
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.snapshot import snapshot
from tasks_app.event_log import ReadTask, read_many
from tasks_app.models import Event, Task

PAGE = 50
"""Tasks examined in one snapshot. While a snapshot is open, the database cannot clean up behind its writers."""
EVENTS = 500
"""Events fetched at a time."""
_REMEDY = "Keep a copy of the database and report it: only a fault of the server or of the storage does this."


def examine_logs(limit: int | None) -> Iterator[Finding | int]:
    """Yield findings about the newest tasks up to the limit and, after each page, the number of tasks examined."""
    count, before = 0, ""
    while limit is None or count < limit:
        size = PAGE if limit is None else min(PAGE, limit - count)
        with snapshot():
            page = list(older_than(Task.objects.order_by("-id"), before)[:size])
            findings = [finding for row in page for finding in examine_task(row)]
        yield from findings
        if not page:
            return
        count, before = count + len(page), page[-1].id
        yield count


def examine_task(row: Task) -> Iterator[Finding]:
    """Yield findings about the log of a task. Call it in a snapshot, so that row and log are of the same moment."""
    numbers, task, ends = _fold_log(row)
    problems = [*_find_gaps(row, numbers)]
    if len(ends) > 1 or (ends and ends[0] != row.last_seq):
        problems.append(f"it ended with event {ends[0]}, and has {row.last_seq} events")
    if task is None:
        problems.append("its log has no event that creates a task")
    elif not problems:
        problems += _find_differences(row, task)
    for problem in problems:
        yield Finding(kind="log", subject=row.id, problem=f"The log of task {row.id}: {problem}.", remedy=_REMEDY)


def _fold_log(row: Task) -> tuple[list[int], TaskValue | None, list[int]]:
    """Return the numbers of the events, the task they fold to, and the numbers of the events that end the task."""
    numbers: list[int] = []
    ends: list[int] = []
    events = _read_events(row, numbers, ends)
    first = next((event for event in events if isinstance(event, TaskCreated)), None)
    return numbers, None if first is None else fold(None, chain([first], events)), ends


def _read_events(row: Task, numbers: list[int], ends: list[int]) -> Iterator[EventValue]:
    """Yield the events of the log. Add their numbers to `numbers`, and those that end the task to `ends`."""
    for event in Event.objects.filter(task_id=row.id).order_by("seq").iterator(EVENTS):
        numbers.append(event.seq)
        if event.state in TERMINAL:
            ends.append(event.seq)
        yield event_of(_document_of(event))


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
            yield f"events {', '.join(missing[:5])} of {row.last_seq} are missing"
        if beyond:
            yield f"there is an event {beyond[0]}, but by the row event {row.last_seq} is the last"


def _find_differences(row: Task, task: TaskValue) -> Iterator[str]:
    """Yield the differences between the folded task and the row, its snapshot included."""
    if row.state != task.status.state.value:
        yield f"it ends in the state {task.status.state.value}, the row says {row.state}"
    if row.status != dumps(encode_status(task.status)):
        yield "its last status is not that of the row"
    (stored,) = read_many([ReadTask(task_id=row.id, sight=None)])
    if stored is None or stored.document != document(task, row.last_seq, row.agent):
        yield "all its events make another task than the snapshot with the events after it"
