"""The history of a large task, read from its log one event at a time and never parsed."""

from collections.abc import Iterator

from msgspec.structs import replace

from a2a.dialects.json.history import History
from a2a.documents import EventDocument, Pieces, TaskDocument
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.event_log.columns import SMALL
from tasks_app.event_log.read_events import stored_event
from tasks_app.models import Event, Task
from tasks_app.off_loop import Pace

_TASK, _EVENT = Task._meta.db_table, Event._meta.db_table
_OCTETS = "octet_length(history)", "length(cast(history as blob))"
"""The size of a stored history on PostgreSQL, which does not read the text for it, and on SQLite, which does."""


def with_long_history(document: TaskDocument) -> TaskDocument:
    """Return a document that was read without its history, with the history as of the same event."""
    history = _history(document.id, document.seq)
    return replace(document, history="[]") if len(history) == 2 else replace(document, long_history=history)


def _history(task_id: str, last: int) -> Pieces:
    after, history = _beginning(task_id, last)
    pace = Pace()
    for event in _events(task_id, after, last):
        history.take(event)
        pace.rest()
    return history.text()


def _beginning(task_id: str, last: int) -> tuple[int, History]:
    """Return the sequence number after which to read the log, and the history up to it.

    That is the snapshot's history if it is small. A large one would be one block of memory.
    """
    octets = _OCTETS[0 if on_postgres() else 1]
    with prepared() as cursor:
        cursor.execute(
            f"select snapshot_seq, history, snapshot_status from {_TASK} "
            f"where id = %s and snapshot_seq between 1 and %s and {octets} <= {SMALL}",
            (task_id, last),
        )
        row = cursor.fetchone()
    return (row[0], History(row[1], row[2])) if row else (0, History())


def _events(task_id: str, after: int, last: int) -> Iterator[EventDocument]:
    """Yield the events that may add to a history."""
    with prepared() as cursor:
        cursor.execute(
            f"select seq, kind, payload, state from {_EVENT} "
            "where task_id = %s and seq > %s and seq <= %s and kind <> 'artifactUpdate' order by seq",
            (task_id, after, last),
        )
        while row := cursor.fetchone():
            yield stored_event(task_id, "", *row)
