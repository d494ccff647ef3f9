"""What can happen to a task, and the pure fold: apply(task, event) -> task.

The log stores these; streams send them; a snapshot is what folding them gave up to some sequence number.
"""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from a2a.types import Artifact, Json, Message, Status, Task


class TaskCreated(Struct, frozen=True, kw_only=True):
    """The first event of every task: its id, context, first message and state."""

    task: Task


class StatusChanged(Struct, frozen=True, kw_only=True):
    """The task has a new status; the message of the old one moves into the history."""

    status: Status


class ArtifactAdded(Struct, frozen=True, kw_only=True):
    """Parts of a result: they replace the artifact of that id, or are appended to it (A2A 1.0, 4.2.2)."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False


class MessageAdded(Struct, frozen=True, kw_only=True):
    """The caller's next message; with a status when it makes the task runnable again."""

    message: Message
    status: Status | None = None


Event = TaskCreated | StatusChanged | ArtifactAdded | MessageAdded


def status_of(event: Event) -> Status | None:
    """The status that the event sets, if it sets one."""
    match event:
        case TaskCreated(task=task):
            return task.status
        case StatusChanged(status=status) | MessageAdded(status=status):
            return status
        case ArtifactAdded():
            return None
        case _:
            assert_never(event)


def apply(task: Task | None, event: Event) -> Task:
    """The task after the event. Raises ValueError if a log does not begin with its task."""
    if isinstance(event, TaskCreated):
        return event.task
    if task is None:
        raise ValueError(f"the log begins with {type(event).__name__} instead of TaskCreated")
    match event:
        case StatusChanged(status=status):
            return _with_status(task, status)
        case MessageAdded(message=message, status=status):
            if status is not None:
                task = _with_status(task, status)
            return replace(task, history=(*task.history, message))
        case ArtifactAdded():
            return replace(task, artifacts=_with_artifact(task.artifacts, event))
        case _:
            assert_never(event)


def _with_status(task: Task, status: Status) -> Task:
    said = task.status.message
    return replace(task, status=status, history=(*task.history, said) if said else task.history)


def _with_artifact(artifacts: tuple[Artifact, ...], event: ArtifactAdded) -> tuple[Artifact, ...]:
    """Appending to an id that is not there creates it: a client that joined late must do the same."""
    new = event.artifact
    for position, old in enumerate(artifacts):
        if old.artifact_id == new.artifact_id:
            merged = _appended(old, new) if event.append else new
            return (*artifacts[:position], merged, *artifacts[position + 1 :])
    return (*artifacts, new)


def _appended(old: Artifact, new: Artifact) -> Artifact:
    metadata: Json | None = {**(old.metadata or {}), **(new.metadata or {})} or None
    extensions = tuple(dict.fromkeys((*old.extensions, *new.extensions)))
    return replace(old, parts=(*old.parts, *new.parts), metadata=metadata, extensions=extensions)
