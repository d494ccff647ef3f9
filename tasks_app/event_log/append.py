"""The only change of a task that exists: under its fence, its state and its sequence, in groups.

One item is one conditional update: visible, with that fence, in a state from which the events may follow. It gives the
next sequence numbers, and the events, the run and the exchange are inserted with it or not at all.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from a2a.dialects.json.json_1_0 import dumps, encode_status, event_document
from a2a.events import Event
from a2a.states import QUIET, TaskState
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import Held
from tasks_app.database.rows import EventRow, on_postgres
from tasks_app.database.work import LOCKED, GroupResult, Work
from tasks_app.event_log import append_postgres, append_sqlite
from tasks_app.event_log.changes import Appended, Change, Outcome, Unheard, last_status, sources
from tasks_app.event_log.exchanges import drop_exchange
from tasks_app.event_log.news import notify
from tasks_app.event_log.snapshots import Refresh
from tasks_app.hints import Reached, hints


class Append(Work[Appended | Unheard | None], Change, kw_only=True):
    """A change as a work item."""

    lane = "write"

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Outcome]:
        return append_many(items)

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[Appended | Unheard | None]]) -> None:
        """Notify followers and dispatchers; have stale snapshots refreshed."""
        done = [(item, result) for item, result in zip(items, results, strict=True) if isinstance(result, Appended)]
        notify([Reached(item.task_id, result.seq, item.state, item.messages > 0) for item, result in done])
        for item, result in done:
            if item.delay is not None:
                hints.offer_in(item.delay)
            if result.stale:
                bridge.put(Refresh(task_id=item.task_id))

    def unique(self) -> str:
        return self.task_id

    def lighten(self) -> bool:
        """Go without the exchange: a change is not undone because its record is refused. The recorder tries again."""
        return drop_exchange(self)


def change(
    task_id: str, context_id: str, events: Sequence[Event], *, now: datetime, actor: str, fence: int | None = None,
    **more: Any,
) -> Append:  # fmt: skip
    """An item that adds these events; further arguments are those of Append."""
    rows = []
    for place, event in enumerate(events, 1):
        stored = event_document(event, task_id=task_id, context_id=context_id, seq=place)
        rows.append(
            EventRow(
                task_id=task_id, seq=place, kind=stored.kind, payload=stored.payload, state=stored.state, actor=actor,
                created_at=now, fence=fence or 0,
            )
        )  # fmt: skip
    status = last_status(events)
    return Append(
        task_id=task_id, events=rows, fence=fence,
        # A run that lost its lease must not write between the loss and the next claim.
        sources=sources(events) if fence is None else [TaskState.WORKING.value],
        state=status.state.value if status else None, status=dumps(encode_status(status)) if status else None,
        status_at=status.timestamp if status else None,
        frees=status is not None and (status.state in QUIET or status.state is TaskState.SUBMITTED), **more,
    )  # fmt: skip


def append_many(items: Sequence[Append]) -> list[Outcome]:
    """Appends each item; None where its conditions do not hold, Locked where somebody else holds a row that it needs.
    No task may be twice in a group.

    On PostgreSQL a group is one statement, and a transaction only if it has deliveries to write.
    """
    if not on_postgres():
        return append_sqlite.append_group(items)
    if not any(item.pushing for item in items):
        return append_postgres.append_group(items)
    held: frozenset[str] = frozenset()
    while True:
        free = [item for item in items if item.task_id not in held]
        try:
            results = iter(append_postgres.append_pushing(free) if free else ())
        except Held as error:
            held |= error.tasks
        else:
            return [LOCKED if item.task_id in held else next(results) for item in items]
