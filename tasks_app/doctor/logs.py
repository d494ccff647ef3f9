"""Compares the row of a task with its log: no gaps, one end, and the same task when the log is folded."""

from collections.abc import Iterable, Iterator
from itertools import chain

from a2a.dialects.json.json_1_0 import document, dumps, encode_status, event_of
from a2a.documents import EventDocument
from a2a.events import Event as EventValue
from a2a.events import TaskCreated, fold
from a2a.states import TERMINAL
from a2a.types import Task as TaskValue
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.snapshot import snapshot
from tasks_app.event_log import ReadTask, read_many
from tasks_app.models import Event, Task

PAGE = 50
"""Tasks examined in one snapshot: a long one would keep the database from cleaning up behind its writers."""
EVENTS = 500
"""Events read at once."""
_REMEDY = "Keep a copy of the database and report it: only a fault of the server or of the storage does this."


def examine_logs(limit: int | None) -> Iterator[Finding | int]:
    """Yield what is wrong with the newest tasks, at most so many of them; and, after each page, how many are done."""
    done, before = 0, ""
    while limit is None or done < limit:
        size = PAGE if limit is None else min(PAGE, limit - done)
        with snapshot():
            rows = Task.objects.order_by("-id")
            page = list((rows.filter(id__lt=before) if before else rows)[:size])
            found = [finding for row in page for finding in examine_task(row)]
        yield from found
        if not page:
            return
        done, before = done + len(page), page[-1].id
        yield done


def examine_task(row: Task) -> Iterator[Finding]:
    """Yield what is wrong with the log of a task; in a snapshot, for both are read."""
    numbers, folded, ends = _folded(row)
    problems = [*_gaps(row, numbers)]
    if len(ends) > 1 or (ends and ends[0] != row.last_seq):
        problems.append(f"it ended with event {ends[0]}, and has {row.last_seq} events")
    if folded is None:
        problems.append("its log has no event that creates a task")
    elif not problems:
        problems += _differences(row, folded)
    for problem in problems:
        yield Finding(kind="log", subject=row.id, problem=f"The log of task {row.id}: {problem}.", remedy=_REMEDY)


def _folded(row: Task) -> tuple[list[int], TaskValue | None, list[int]]:
    """Return the numbers of the events, the task that they make, and the numbers of the events that end it."""
    numbers: list[int] = []
    ends: list[int] = []
    events = _counted(row, numbers, ends)
    first = next((event for event in events if isinstance(event, TaskCreated)), None)
    return numbers, None if first is None else fold(None, chain([first], events)), ends


def _counted(row: Task, numbers: list[int], ends: list[int]) -> Iterator[EventValue]:
    """Yield the events of the log, and add their numbers and those of the events that end the task to the lists."""
    for event in Event.objects.filter(task_id=row.id).order_by("seq").iterator(EVENTS):
        numbers.append(event.seq)
        if event.state in TERMINAL:
            ends.append(event.seq)
        yield event_of(_stored(event))


def _stored(event: Event) -> EventDocument:
    return EventDocument(
        task_id=event.task_id, context_id="", seq=event.seq, kind=event.kind, payload=event.payload, state=event.state  # type: ignore[arg-type]  # as it was written
    )  # fmt: skip


def _gaps(row: Task, numbers: Iterable[int]) -> Iterator[str]:
    if list(numbers) != list(range(1, row.last_seq + 1)):
        present = set(numbers)
        missing = [str(seq) for seq in range(1, row.last_seq + 1) if seq not in present]
        beyond = [str(seq) for seq in sorted(present) if seq > row.last_seq]
        if missing:
            yield f"events {', '.join(missing[:5])} of {row.last_seq} are missing"
        if beyond:
            yield f"event {beyond[0]} is beyond the last one that the row knows, {row.last_seq}"


def _differences(row: Task, folded: TaskValue) -> Iterator[str]:
    if row.state != folded.status.state.value:
        yield f"it ends in the state {folded.status.state.value}, the row says {row.state}"
    if row.status != dumps(encode_status(folded.status)):
        yield "its last status is not that of the row"
    (read,) = read_many([ReadTask(task_id=row.id, sight=None)])
    if read is None or read.document != document(folded, row.last_seq):
        yield "folded, it is another task than the snapshot and the events behind it make"
