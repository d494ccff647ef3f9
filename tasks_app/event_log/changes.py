"""Changes of a task: events, the conditions under which they may be added, and what became of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.documents import TaskDocument
from a2a.events import Event, status_of
from a2a.states import TERMINAL, TRANSITIONS, TaskState
from a2a.types import Status
from tasks_app.database.rows import (
    BODIES,
    EXCHANGES,
    FILES,
    KEYS,
    RUNS,
    BodyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    RunRow,
    Table,
    WebhookRow,
)
from tasks_app.database.work import NotDone
from tasks_app.event_log.registry import put
from tasks_app.models import Task


class Appended(Struct, frozen=True):
    """The task's last sequence number, and whether its snapshot should be refreshed."""

    seq: int
    stale: bool


class Pushing(NotDone, frozen=True):
    """The task has webhooks: the item is asked for again, and writes their deliveries then."""


PUSHING = Pushing()


class Unheard(Struct, frozen=True):
    """A message waits that the run has not looked at, and this was not done."""


UNHEARD = Unheard()

Outcome = Appended | Unheard | NotDone | None


class Change(Struct, kw_only=True):
    """Events for one task, and the conditions under which they may be added."""

    task_id: str
    events: list[EventRow]
    sources: list[str]
    """The states from which the events may follow."""
    state: str | None
    """The state after them, if they set one."""
    status: str | None
    status_at: datetime | None
    fence: int | None = None
    """The fence of a run; None for callers and operators, whose writes no fence refuses."""
    sight: str | None = None
    """From access.sight; None is the server itself."""
    frees: bool = False
    """The lease ends: nobody works on the task any more."""
    attempts: int = 0
    """Added to the count of attempts: -1 gives back the attempt of an agent that was not called."""
    delay: float | None = None
    """Seconds before the task may be claimed, of a task that becomes runnable."""
    after: int | None = None
    """The run's own last event: the item is refused if the run has written another since. So it can be asked for again
    when its connection was lost: it is never written twice."""
    heard: int | None = None
    """Only if no message is newer than this event: else it comes back as UNHEARD. None: whatever waits."""
    wants: str | None = None
    """The wishes of a new message, in stored form; None leaves those of the last one."""
    lease_before: datetime | None = None
    """Only if the lease ended before this: the sweeper's condition."""
    key: KeyRow | None = None
    files: list[FileRow] = []
    run: RunRow | None = None
    exchange: ExchangeRow | None = None
    body: BodyRow | None = None
    snapshot: TaskDocument | None = None
    """The task after these events: stored as its snapshot unless somebody else's events came between."""
    most_size: int | None = None
    """Only if the task then holds no more characters than this, and no more messages than the next."""
    most_messages: int | None = None
    webhook: WebhookRow | None = None
    """Registered with the events, which are delivered to it already."""
    pushing: bool = False
    """Write the deliveries of a task that has webhooks instead of coming back as Pushing."""

    @property
    def size(self) -> int:
        """The characters of the events."""
        return sum(event.size for event in self.events)

    @property
    def messages(self) -> int:
        """How many of the events are messages of the caller."""
        return sum(event.kind == "message" for event in self.events)

    @property
    def last_message(self) -> int | None:
        """The place of the last message among the events, counted from 1."""
        return next((n for n, event in reversed([*enumerate(self.events, 1)]) if event.kind == "message"), None)


def last_status(events: Sequence[Event]) -> Status | None:
    """The status after the events, if they set one."""
    return next((status for event in reversed(events) if (status := status_of(event))), None)


def sources(events: Sequence[Event]) -> list[str]:
    """The states in which a task may be for these events to follow, by the transition table."""
    allowed = {state for state in TaskState if state not in TERMINAL}
    if (first := next((status.state for event in events if (status := status_of(event))), None)) is not None:
        allowed = {state for state in allowed if first in TRANSITIONS[state]}
    return sorted(allowed)


def numbered(item: Change, seq: int) -> list[EventRow]:
    """The events with their numbers in the log; the item keeps those it has, for it may be tried again."""
    first = seq - len(item.events) + 1
    return [replace(event, seq=first + place) for place, event in enumerate(item.events)]


def register_with(cursor: CursorWrapper, webhook: WebhookRow) -> None:
    put(cursor, webhook)
    Task.objects.filter(pk=webhook.task_id).update(pushes=True)


def further_rows(items: Sequence[Change]) -> list[tuple[Table, list[Any]]]:
    """The further rows that go with the items, table by table."""
    parts: list[tuple[Table, list[Any]]] = [
        (KEYS, [item.key for item in items if item.key]),
        (RUNS, [item.run for item in items if item.run]),
        (EXCHANGES, [item.exchange for item in items if item.exchange]),
        (BODIES, [item.body for item in items if item.body]),
        (FILES, [file for item in items for file in item.files]),
    ]
    return [(table, rows) for table, rows in parts if rows]
