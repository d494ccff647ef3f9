"""The states of a task and every move between them. Data: only the event log's append reads TRANSITIONS."""

from enum import StrEnum


class TaskState(StrEnum):
    """A2A 1.0, 4.1.3."""

    SUBMITTED = "submitted"
    """Accepted; waits for a worker."""
    WORKING = "working"
    """An agent is at it."""
    INPUT_REQUIRED = "input_required"
    """The agent asked back; the next message continues the task."""
    AUTH_REQUIRED = "auth_required"
    """The agent needs credentials, which come out of band."""
    COMPLETED = "completed"
    """Done."""
    FAILED = "failed"
    """Ended by an error."""
    CANCELED = "canceled"
    """Ended by the caller or an operator."""
    REJECTED = "rejected"
    """The agent will not do it."""


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
"""A task in one of these never changes again."""

INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"""A task in one of these waits for its caller."""

RUNNABLE = frozenset({TaskState.SUBMITTED})
"""A task in one of these waits for a worker."""

ACTIVE = frozenset({TaskState.WORKING})
"""A worker has the task, under a lease."""

UNFINISHED = RUNNABLE | ACTIVE
"""A task in one of these is queued or running."""

QUIET = TERMINAL | INTERRUPTED
"""No agent works on the task; a waiting send returns."""

TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # A run begins; or there is none to begin.
    TaskState.SUBMITTED: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | INTERRUPTED | TERMINAL,
    # Progress; a new attempt; an agent that asks back; the end.
    TaskState.WORKING: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | INTERRUPTED | TERMINAL,
    # The caller's next message makes it runnable again.
    TaskState.INPUT_REQUIRED: frozenset({TaskState.SUBMITTED}) | TERMINAL,
    # As above; credentials may also arrive out of band, and the agent goes on.
    TaskState.AUTH_REQUIRED: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | TERMINAL,
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
    TaskState.REJECTED: frozenset(),
}
"""From a state to the states that may follow."""
