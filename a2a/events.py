"""The events of a task, and the fold that computes a task from its events.

The log stores events and streams send them. A snapshot is the fold of all events up to one sequence number.
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from a2a.types import Artifact, Json, Message, Part, Status, Task


class TaskCreated(Struct, frozen=True, kw_only=True):
    """The first event of every task: its id, context, first message and state."""

    task: Task


class StatusChanged(Struct, frozen=True, kw_only=True):
    """The task has a new status; the message of the old one moves into the history."""

    status: Status


class ArtifactAdded(Struct, frozen=True, kw_only=True):
    """Parts of a result, which replace the artifact of that id or are appended to it (A2A 1.0, 4.2.2).

    Appended text extends the last part if both parts are text with the same media type, file name and metadata.
    """

    artifact: Artifact
    append: bool = False
    """False to replace the artifact, true to add the parts to it."""
    last_chunk: bool = False
    """True if the artifact is complete."""


class MessageAdded(Struct, frozen=True, kw_only=True):
    """The caller's next message, with a status if the message makes the task runnable again."""

    message: Message
    status: Status | None = None


Event = TaskCreated | StatusChanged | ArtifactAdded | MessageAdded


def status_of(event: Event) -> Status | None:
    """Return the status that the event sets; None if it sets none."""
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
    """Return the task after one event. Raises ValueError if the first event of a log is not TaskCreated."""
    return fold(task, (event,))


def fold(task: Task | None, events: Iterable[Event]) -> Task:
    """Return the task after the events, in linear time. Raises ValueError as `apply` does, and for an empty log."""
    draft = _Draft(task) if task is not None else None
    for event in events:
        if isinstance(event, TaskCreated):
            draft = _Draft(event.task)
        elif draft is None:
            raise ValueError(f"the log begins with {type(event).__name__} instead of TaskCreated")
        else:
            draft.add_event(event)
    if draft is None:
        raise ValueError("the log has no events")
    return draft.finish()


class _Draft:
    """A task during the fold. Its lists grow in place: a copy for each event would take quadratic time."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.status = task.status
        self.history = list(task.history)
        self.artifacts = {artifact.artifact_id: artifact for artifact in task.artifacts}
        self.parts: dict[str, _PartList] = {}
        """Parts of the artifacts that events have appended to, by artifact id."""

    def add_event(self, event: StatusChanged | MessageAdded | ArtifactAdded) -> None:
        match event:
            case StatusChanged(status=status):
                self._set_status(status)
            case MessageAdded(message=message, status=status):
                if status is not None:
                    self._set_status(status)
                self.history.append(message)
            case ArtifactAdded(artifact=artifact, append=append):
                self._add_artifact(artifact, append=append)
            case _:
                assert_never(event)

    def _set_status(self, status: Status) -> None:
        if self.status.message:
            self.history.append(self.status.message)
        self.status = status

    def _add_artifact(self, new: Artifact, *, append: bool) -> None:
        """Add, replace or extend an artifact.

        An append to an unknown id creates the artifact: a client that joins late has to fold the same way.
        """
        old = self.artifacts.get(new.artifact_id)
        if old is None or not append:
            self.artifacts[new.artifact_id] = new
            self.parts.pop(new.artifact_id, None)
            return
        if new.artifact_id not in self.parts:
            self.parts[new.artifact_id] = _PartList(old.parts)
        self.parts[new.artifact_id].append(new.parts)
        metadata: Json | None = {**(old.metadata or {}), **(new.metadata or {})} or None
        extensions = tuple(dict.fromkeys((*old.extensions, *new.extensions)))
        if metadata != old.metadata or extensions != old.extensions:
            self.artifacts[new.artifact_id] = replace(old, metadata=metadata, extensions=extensions)

    def finish(self) -> Task:
        for artifact_id, part_list in self.parts.items():
            self.artifacts[artifact_id] = replace(self.artifacts[artifact_id], parts=part_list.finish())
        return replace(
            self.task, status=self.status, history=tuple(self.history), artifacts=tuple(self.artifacts.values())
        )


class _PartList:
    """The parts of an artifact during a series of appends.

    The pieces of its last text are joined once, at the end: a join for each chunk would take quadratic time.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = list(parts)
        self.pieces: list[str] = []
        """Pieces of the last part's text. Empty while nothing has extended it."""

    def append(self, new: tuple[Part, ...]) -> None:
        if new and self.parts and continues(self.parts[-1], new[0]):
            self.pieces += [new[0].text or ""] if self.pieces else [self.parts[-1].text or "", new[0].text or ""]
            new = new[1:]
        if new:
            self._join()
            self.parts += new

    def _join(self) -> None:
        if self.pieces:
            self.parts[-1] = replace(self.parts[-1], text="".join(self.pieces))
            self.pieces = []

    def finish(self) -> tuple[Part, ...]:
        self._join()
        return tuple(self.parts)


def continues(old: Part, new: Part) -> bool:
    """Return whether the new part extends the old one: both are text with the same media type, name and metadata."""
    if old.text is None or new.text is None:
        return False
    return old.media_type == new.media_type and old.filename == new.filename and old.metadata == new.metadata
