"""Notices: the kinds of changes that a follower of a task may choose, and the filter that stores such a choice.

A change has one notice. If several kinds fit, it is the first that the follower has chosen: the end of a task comes
before a change of its status, and that before the message in it.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec.structs import replace

from a2a.documents import EventDocument, EventKind
from a2a.states import TaskState


class Notice(StrEnum):
    """A kind of changes."""

    STATUS_CHANGE = "STATUS_CHANGE"
    """The task has another status."""
    NEW_MESSAGE = "NEW_MESSAGE"
    """The caller or the agent has said something."""
    NEW_ARTIFACT = "NEW_ARTIFACT"
    """There is an artifact, or a chunk of one."""
    COMPLETED = "COMPLETED"
    """The agent has finished the task."""
    FAILED = "FAILED"
    """An error has ended the task, or the agent has refused it."""


ENDS = {
    TaskState.COMPLETED.value: Notice.COMPLETED,
    TaskState.FAILED.value: Notice.FAILED,
    TaskState.REJECTED.value: Notice.FAILED,
}
"""The notices of states that end a task."""
EVERYTHING = -1
"""The filter that lets every change pass."""
_BITS = {notice: 1 << place for place, notice in enumerate(Notice)}
"""The bits of filters, which are stored: a new notice comes last."""


def filter_of(notices: Iterable[Notice]) -> int:
    """Return the filter for these kinds of changes."""
    return sum(_BITS[notice] for notice in set(notices))


def names_of(choice: int | None) -> list[str]:
    """Return the names of the kinds in a filter; all of them without a filter."""
    return [notice.value for notice, bit in _BITS.items() if choice is None or choice & bit]


def notices_of(kind: EventKind, state: str | None, payload: str) -> list[Notice]:
    """Return the kinds of changes that an event is, the one that says most first."""
    match kind:
        case "artifactUpdate":
            return [Notice.NEW_ARTIFACT]
        case "message":
            return [Notice.NEW_MESSAGE] if state is None else [Notice.NEW_MESSAGE, Notice.STATUS_CHANGE]
        case "task":
            return [Notice.STATUS_CHANGE, Notice.NEW_MESSAGE]
        case "statusUpdate":
            # The stored status has only a state and a time beside its message.
            message = [Notice.NEW_MESSAGE] if '"message":{' in payload else []
            return [*([ENDS[state]] if state in ENDS else []), Notice.STATUS_CHANGE, *message]


def bits_of(kind: EventKind, state: str | None, payload: str) -> int:
    """Return the filter for all kinds of changes that an event is."""
    return filter_of(notices_of(kind, state, payload))


def with_notice(event: EventDocument, choice: int) -> EventDocument | None:
    """Return the event with its notice under the filter; None if the filter does not let it pass."""
    for notice in notices_of(event.kind, event.state, event.payload):
        if _BITS[notice] & choice:
            return replace(event, notice=notice.value)
    return None
