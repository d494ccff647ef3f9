"""A small model of the promises: tasks, runs and webhooks as they must be, without a database."""

from dataclasses import dataclass, field

from a2a.states import INTERRUPTED, TERMINAL, TaskState
from tasks_app.event_log import TaskRead
from tests.conftest import Person

MOST = 2
"""Attempts of the agent that is used."""


@dataclass(eq=False)
class Webhook:
    """An address that hears of a task's events."""

    path: str
    due: list[int] = field(default_factory=list)
    """The events that it must hear of, in order."""
    arrived: list[int] = field(default_factory=list)
    removed: bool = False

    def __repr__(self) -> str:
        return f"{self.path} of events {self.due}, {'removed' if self.removed else f'{len(self.arrived)} arrived'}"


@dataclass(eq=False)
class Task:
    """A task as it must be."""

    number: int
    id: str
    person: Person
    messages: list[str]
    state: TaskState = TaskState.SUBMITTED
    fence: int = 0
    attempt: int = 0
    last: int = 1
    """The newest event."""
    newest: int = 0
    """The event of the newest message after the first."""
    pauses: bool = False
    """Its next attempt is an hour away."""
    lapsed: bool = False
    """Its lease has ended."""
    webhooks: list[Webhook] = field(default_factory=list)

    def __repr__(self) -> str:
        more = "".join([", pauses" * self.pauses, ", lapsed" * self.lapsed])
        return f"<task {self.number} {self.state.value}{more}, fence {self.fence}, attempt {self.attempt}>"

    @property
    def has_ended(self) -> bool:
        return self.state in TERMINAL

    @property
    def waits(self) -> bool:
        """Return whether a worker may claim the task."""
        return self.state is TaskState.SUBMITTED and not self.pauses

    @property
    def row(self) -> tuple[str, int, int, int]:
        return self.state.value, self.fence, self.attempt, self.last

    def happens(self, state: TaskState | None = None, *, message: bool = False, pauses: bool = False) -> None:
        """Add an event. A webhook hears of all but a message that changes no state."""
        self.last += 1
        if state is not None:
            assert not self.has_ended, "a task that has ended never changes"
            self.state, self.lapsed, self.pauses = state, False, pauses
        for webhook in self.webhooks:
            if not webhook.removed and (state is not None or not message):
                webhook.due.append(self.last)

    def hears(self, message_id: str) -> None:
        """Add a message of the caller; the answer to a question begins the attempts anew."""
        answers = self.state in INTERRUPTED
        self.attempt = 0 if answers else self.attempt
        self.happens(TaskState.SUBMITTED if answers else None, message=True)
        self.messages.append(message_id)
        self.newest = self.last

    def claimed(self) -> None:
        self.happens(TaskState.WORKING)
        self.fence, self.attempt = self.fence + 1, self.attempt + 1

    def goes_on(self, *, pauses: bool = False) -> None:
        """The attempt ended without a result: another one, or the end."""
        again = self.attempt < MOST
        self.happens(TaskState.SUBMITTED if again else TaskState.FAILED, pauses=again and pauses)


@dataclass(eq=False)
class Run:
    """A worker's attempt at a task, as the worker knows it."""

    task: Task
    worker: str
    fence: int
    read: TaskRead
    heard: int
    """The event up to which the agent has heard the messages."""
    last: int
    """The run's own last event."""
    known: bool
    """Whether the answer to its claim arrived."""

    def __repr__(self) -> str:
        return f"<run {self.fence} of {self.task!r} by {self.worker}{'' if self.holds else ', too late'}>"

    @property
    def holds(self) -> bool:
        return self.task.state is TaskState.WORKING and self.task.fence == self.fence

    @property
    def pair(self) -> tuple[str, int]:
        return self.task.id, self.fence
