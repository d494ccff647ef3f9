"""The states of a task, the sets of states that other modules ask for, and the moves between states.

Only the event log's append reads TRANSITIONS, and refuses every other move.
"""

from enum import StrEnum


class TaskState(StrEnum):
    """The state of a task (A2A 1.0, 4.1.3)."""

    SUBMITTED = "submitted"
    """The task was accepted and waits for a runner."""
    WORKING = "working"
    """An agent works on the task."""
    INPUT_REQUIRED = "input_required"
    """The agent has a question; the caller's next message continues the task."""
    AUTH_REQUIRED = "auth_required"
    """The agent needs credentials, which the caller supplies out of band."""
    COMPLETED = "completed"
    """The agent finished the task."""
    FAILED = "failed"
    """An error ended the task."""
    CANCELED = "canceled"
    """The caller or an operator ended the task."""
    REJECTED = "rejected"
    """The agent refused the task."""


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
"""States that end a task: it never changes again."""

INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
"""States in which a task waits for its caller."""

RUNNABLE = frozenset({TaskState.SUBMITTED})
"""States in which a task waits for a runner."""

ACTIVE = frozenset({TaskState.WORKING})
"""States in which a runner has the task, under a lease."""

UNFINISHED = RUNNABLE | ACTIVE
"""States in which a task is queued or running."""

QUIET = TERMINAL | INTERRUPTED
"""States in which no agent works on the task, so that a waiting send returns."""

TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # A run begins, or the task ends without a run.
    TaskState.SUBMITTED: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | INTERRUPTED | TERMINAL,
    # The agent reports progress, is called again, asks a question, or ends the task.
    TaskState.WORKING: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | INTERRUPTED | TERMINAL,
    # The caller's next message makes it runnable again.
    TaskState.INPUT_REQUIRED: frozenset({TaskState.SUBMITTED}) | TERMINAL,
    # As for a question. Credentials may also arrive out of band, so that the agent continues by itself.
    TaskState.AUTH_REQUIRED: frozenset({TaskState.SUBMITTED, TaskState.WORKING}) | TERMINAL,
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
    TaskState.REJECTED: frozenset(),
}
"""The states that may follow each state."""
