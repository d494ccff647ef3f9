"""The events of a task, and the pure fold: fold(task, events) -> task.

The log stores these; streams send them; a snapshot is what folding them gave up to some sequence number.
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
    """Parts of a result: they replace the artifact of that id, or are appended to it (A2A 1.0, 4.2.2).

    Appended text continues the text before it, as one part, if the two differ in nothing but their text.
    """

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
    return fold(task, (event,))


def fold(task: Task | None, events: Iterable[Event]) -> Task:
    """The task after the events, in time linear in them. Raises ValueError as above, and if there is nothing at all."""
    draft = _Draft(task) if task is not None else None
    for event in events:
        if isinstance(event, TaskCreated):
            draft = _Draft(event.task)
        elif draft is None:
            raise ValueError(f"the log begins with {type(event).__name__} instead of TaskCreated")
        else:
            draft.take(event)
    if draft is None:
        raise ValueError("the log has no events")
    return draft.finish()


class _Draft:
    """A task that is being folded: its lists grow in place, since copying them for every event takes quadratic time."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.status = task.status
        self.history = list(task.history)
        self.artifacts = {artifact.artifact_id: artifact for artifact in task.artifacts}
        self.parts: dict[str, _Growing] = {}
        """All parts of those artifacts to which some were appended."""

    def take(self, event: StatusChanged | MessageAdded | ArtifactAdded) -> None:
        match event:
            case StatusChanged(status=status):
                self._set_status(status)
            case MessageAdded(message=message, status=status):
                if status is not None:
                    self._set_status(status)
                self.history.append(message)
            case ArtifactAdded(artifact=artifact, append=append):
                self._add(artifact, append=append)
            case _:
                assert_never(event)

    def _set_status(self, status: Status) -> None:
        if self.status.message:
            self.history.append(self.status.message)
        self.status = status

    def _add(self, new: Artifact, *, append: bool) -> None:
        """Appending to an id that is not there creates it: a client that joined late must do the same."""
        old = self.artifacts.get(new.artifact_id)
        if old is None or not append:
            self.artifacts[new.artifact_id] = new
            self.parts.pop(new.artifact_id, None)
            return
        if new.artifact_id not in self.parts:
            self.parts[new.artifact_id] = _Growing(old.parts)
        self.parts[new.artifact_id].append(new.parts)
        metadata: Json | None = {**(old.metadata or {}), **(new.metadata or {})} or None
        extensions = tuple(dict.fromkeys((*old.extensions, *new.extensions)))
        if metadata != old.metadata or extensions != old.extensions:
            self.artifacts[new.artifact_id] = replace(old, metadata=metadata, extensions=extensions)

    def finish(self) -> Task:
        for artifact_id, growing in self.parts.items():
            self.artifacts[artifact_id] = replace(self.artifacts[artifact_id], parts=growing.finish())
        return replace(
            self.task, status=self.status, history=tuple(self.history), artifacts=tuple(self.artifacts.values())
        )


class _Growing:
    """The parts of an artifact that chunks are appended to. The pieces of its last text are joined once, at the end:
    to join them with every chunk takes quadratic time."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = list(parts)
        self.pieces: list[str] = []
        """The text of the last part, if something was appended to it."""

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
    """Whether the new part is text that goes on where the old one ends: both have the same type, name and metadata."""
    if old.text is None or new.text is None:
        return False
    return old.media_type == new.media_type and old.filename == new.filename and old.metadata == new.metadata
