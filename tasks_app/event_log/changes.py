"""Changes of a task: events, the conditions under which they may be added, and the outcomes."""

from collections.abc import Sequence
from datetime import datetime

from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import event_document
from a2a.documents import EventDocument, TaskDocument
from a2a.events import Event, StatusChanged, status_of
from a2a.states import TERMINAL, TRANSITIONS, TaskState
from a2a.types import Status
from tasks_app.database.rows import (
    ActRow,
    AuditRow,
    BodyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    PositionRow,
    Row,
    RunRow,
    SecretRow,
    WebhookRow,
)
from tasks_app.database.tables import ACTS, AUDIT, BODIES, EXCHANGES, FILES, KEYS, POSITIONS, RUNS, SECRETS, Table
from tasks_app.database.work import NotDone
from tasks_app.event_log.webhooks import put
from tasks_app.models import Task


class Appended(Struct, frozen=True):
    """The outcome of a change that was written."""

    seq: int
    """The task's last sequence number."""
    stale: bool
    """Whether the snapshot should be refreshed."""
    unsettled: int | None = None
    """The cost of a task that has ended, if its reservation must be settled in the same transaction."""


class HasWebhooks(NotDone, frozen=True):
    """The outcome for a task with webhooks: the bridge asks for the item again, and then it writes their deliveries."""


HAS_WEBHOOKS = HasWebhooks()


class HasReservation(NotDone, frozen=True):
    """The outcome for the end of a task with a reservation: the bridge asks for the item again, and then the
    reservation is settled with it."""


HAS_RESERVATION = HasReservation()


class NewerMessage(Struct, frozen=True):
    """The outcome for a run whose agent has not read the newest message: nothing was written."""


NEWER_MESSAGE = NewerMessage()

Outcome = Appended | NewerMessage | NotDone | None


class Change(Struct, kw_only=True):
    """Events for one task, and the conditions under which they are added."""

    task_id: str
    events: list[EventRow]
    sources: list[str]
    """The states from which the events may follow."""
    state: str | None
    """The state after the events, if they set one."""
    status: str | None
    status_at: datetime | None
    fence: int | None = None
    """The fence of a run; None for callers and operators, whose writes no fence refuses."""
    sight: str | None = None
    """The result of access.sight for the caller; None for the server itself, which sees all tasks."""
    owner_id: int | None = None
    """The owner of the task, for the quota. Without one the events count there with the next sum."""
    ends_lease: bool = False
    """Whether the change ends the lease, because no run works on the task any more."""
    attempts: int = 0
    """Added to the count of attempts: -1 gives back the attempt of an agent that was not called."""
    delay: float | None = None
    """Seconds before a task that becomes runnable may be claimed."""
    after: int | None = None
    """The run's own last event. The item is refused if the run has written another since, so that it can be asked for
    again after its connection was lost: it is never written twice."""
    newest_message: int | None = None
    """The event of the newest message that the agent has read. If the task has a newer message, the outcome is
    NEWER_MESSAGE. None sets no such condition."""
    wants: str | None = None
    """The preferences of a new message, in stored form; None leaves those of the message before."""
    lease_before: datetime | None = None
    """The sweeper's condition: the lease ended before this."""
    key: KeyRow | None = None
    secret: SecretRow | None = None
    """The secrets of the message, for its agent."""
    files: list[FileRow] = []
    position: PositionRow | None = None
    """The place in a remote stream whose events these are."""
    run: RunRow | None = None
    exchange: ExchangeRow | None = None
    body: BodyRow | None = None
    entry: AuditRow | None = None
    """The entry of the audit. Unlike the exchange it is never dropped: no change is stored without it."""
    acts: list[ActRow] = []
    """The acts of the operator who asked for the change."""
    snapshot: TaskDocument | None = None
    """The task after these events. It is stored as the snapshot unless other events came between."""
    most_size: int | None = None
    """The characters that the task may hold after the events. None sets no condition for characters and messages."""
    most_messages: int | None = None
    """The messages that the task may hold after the events."""
    webhook: WebhookRow | None = None
    """A webhook to register with the events, and to deliver these events to."""
    with_deliveries: bool = False
    """Whether deliveries are written for a task with webhooks. If not, the outcome for such a task is HAS_WEBHOOKS."""

    spent: int | None = None
    """The sum of all reports of the task's runs; None for no change. It is not a difference, so that an item that is
    repeated counts nothing twice."""
    settles: bool = False
    """Whether the end of a task settles its reservation. If not, the outcome for a task that has one is
    HAS_RESERVATION."""

    @property
    def ends_task(self) -> bool:
        """Whether the task has ended after the events."""
        return self.state in TERMINAL

    @property
    def size(self) -> int:
        """The characters of the payloads of the events."""
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
    """Return the status after the events, if they set one."""
    return next((status for event in reversed(events) if (status := status_of(event))), None)


def sources(events: Sequence[Event]) -> list[str]:
    """Return the states that these events may follow, by the transition table."""
    states = {state for state in TaskState if state not in TERMINAL}
    if (first := next((status.state for event in events if (status := status_of(event))), None)) is not None:
        states = {state for state in states if first in TRANSITIONS[state]}
    return sorted(states)


def event_row(
    document: EventDocument, *, now: datetime, actor: str, fence: int = 0, exchange_id: str | None = None
) -> EventRow:
    """Return the row of an event."""
    return EventRow(
        task_id=document.task_id,
        seq=document.seq,
        kind=document.kind,
        payload=document.payload,
        state=document.state,
        actor=actor,
        created_at=now,
        exchange_id=exchange_id,
        fence=fence,
    )


def working_row(status: Status, task_id: str = "", seq: int = 0, fence: int = 0) -> EventRow:
    """Return the row of the event "working", which a claim appends."""
    document = event_document(StatusChanged(status=status), task_id=task_id, context_id="", seq=seq)
    return event_row(document, now=status.timestamp, actor="runner", fence=fence)


def number_events(item: Change, seq: int) -> list[EventRow]:
    """Return copies of the events with their numbers in the log. Those of the item stay, for a repetition of it."""
    first = seq - len(item.events) + 1
    return [replace(event, seq=first + place) for place, event in enumerate(item.events)]


def register_with(cursor: CursorWrapper, webhook: WebhookRow) -> None:
    """Register a webhook in the transaction of an append."""
    put(cursor, webhook)
    Task.objects.filter(pk=webhook.task_id).update(pushes=True)


def further_rows(items: Sequence[Change]) -> list[tuple[Table, Sequence[Row]]]:
    """Return the rows that are inserted with the items besides events, table by table."""
    parts: list[tuple[Table, Sequence[Row]]] = [
        (KEYS, [item.key for item in items if item.key]),
        (RUNS, [item.run for item in items if item.run]),
        (EXCHANGES, [item.exchange for item in items if item.exchange]),
        (BODIES, [item.body for item in items if item.body]),
        (AUDIT, [item.entry for item in items if item.entry]),
        (ACTS, [act for item in items for act in item.acts]),
        (FILES, [file for item in items for file in item.files]),
        (SECRETS, [item.secret for item in items if item.secret]),
        (POSITIONS, [item.position for item in items if item.position]),
    ]
    return [(table, rows) for table, rows in parts if rows]
