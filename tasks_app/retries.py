"""What becomes of a task whose attempt ended before its agent did: called again, or failed with the true reason."""

from msgspec import Struct

from a2a.events import Event
from a2a.scribe import Scribe
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.ids import uuid7


class Attempt(Struct, frozen=True):
    """An attempt at a task that has ended, and how many there may be."""

    task_id: str
    context_id: str
    tries: int
    """How often the agent was called for this message, this attempt included."""
    most: int
    """How often it may be called: the option `attempts` of the agent."""

    @property
    def is_last(self) -> bool:
        return self.tries >= self.most

    def __str__(self) -> str:
        return f"attempt {self.tries} of {self.most}"


class Verdict(Struct, frozen=True):
    """The event that ends the attempt, and what its run is recorded as."""

    event: Event
    outcome: str
    tries: int = 0
    """Added to the tries of the task: -1 where the agent was not called."""


def uncalled(attempt: Attempt) -> Verdict:
    """Release a task that was claimed by a process that ends, and whose agent was not called."""
    sentence = "The server is going down. The task goes on when it is back."
    return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "released", tries=-1)


def interrupted(attempt: Attempt) -> Verdict:
    """Judge an attempt whose process was told to end while the agent was at work."""
    if not attempt.is_last:
        sentence = f"Interrupted by a restart of the server in {attempt}. The agent is called again."
        return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "interrupted")
    sentence = f"The agent was interrupted by a restart of the server{_no_more(attempt)}"
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "interrupted")


def lost(attempt: Attempt) -> Verdict:
    """Judge an attempt whose lease ended: its process died, froze, or was cut off from the database."""
    if not attempt.is_last:
        sentence = f"The worker was lost in {attempt}. The agent is called again."
        return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "lost")
    sentence = f"The worker was lost while the agent was at work{_no_more(attempt)}"
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "lost")


def overtime(attempt: Attempt, timeout: float) -> Verdict:
    """Fail an attempt that took longer than the agent may; it is not tried again, for it would take as long."""
    sentence = f"The agent took longer than its timeout of {timeout:g} s."
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "overdue")


def _no_more(attempt: Attempt) -> str:
    """Return the end of a sentence: why the agent is not called again, and what its author can do."""
    if attempt.most == 1:
        return ", and it is tried once only. Define it with attempts=2 to have it called again."
    return f" in the last of its {attempt.most} attempts."


def _status(attempt: Attempt, state: TaskState, sentence: str) -> Event:
    return Scribe(attempt.task_id, attempt.context_id, 1, uuid7).said(state, clock.now(), sentence)
