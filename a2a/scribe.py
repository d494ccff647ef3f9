"""The translation of an agent's actions into events of its task."""

from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from a2a.actions import Action, Ask, Chunk, Reject, Reply, Say
from a2a.events import ArtifactAdded, Event, StatusChanged, continues
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, Role, Status


class Scribe:
    """The translator of one run. It remembers which artifacts the run has begun."""

    def __init__(self, task_id: str, context_id: str, new_id: Callable[[], str], *, turn: int = 1) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.artifact_id = f"answer-{turn}"
        """The artifact of chunks without an id. `turn` is the number of the caller's message within the task, so all
        attempts at a message use one id, and a later attempt replaces the artifact of an earlier one."""
        self.artifact_ids: set[str] = set()
        """The artifacts that have a chunk from this run."""
        self.new_id = new_id
        """Returns a message id."""

    def event(self, action: Action, now: datetime) -> Event:
        """Return the event of an action."""
        match action:
            case Chunk():
                return self._chunk(action)
            case Say():
                return self._status_event(TaskState.WORKING, now, action)
            case Ask(credentials=credentials):
                state = TaskState.AUTH_REQUIRED if credentials else TaskState.INPUT_REQUIRED
                return self._status_event(state, now, action)
            case Reply():
                return self._status_event(TaskState.COMPLETED, now, action)
            case Reject():
                return self._status_event(TaskState.REJECTED, now, action)
            case _:
                assert_never(action)

    def _status_event(self, state: TaskState, now: datetime, action: Say | Ask | Reply | Reject) -> StatusChanged:
        return StatusChanged(status=Status(state=state, timestamp=now, message=self.message(action)))

    def status(self, state: TaskState, now: datetime) -> StatusChanged:
        """Return a status without a message."""
        return StatusChanged(status=Status(state=state, timestamp=now))

    def explain(self, state: TaskState, now: datetime, text: str, reason: str = "") -> StatusChanged:
        """Return a status with a sentence of the server as the agent's message. Its metadata has the reason, if the
        sentence has one that programs know."""
        metadata = {"reason": reason} if reason else None
        return self._status_event(state, now, Say((Part(text=text, media_type="text/plain"),), metadata=metadata))

    def message(self, action: Say | Ask | Reply | Reject, *, bare: bool = False) -> Message:
        """Return a message of the agent. A bare message belongs to no task."""
        return Message(
            message_id=self.new_id(),
            role=Role.AGENT,
            parts=action.parts,
            context_id=self.context_id,
            task_id=None if bare else self.task_id,
            metadata=action.metadata,
            extensions=action.extensions,
        )

    def _chunk(self, chunk: Chunk) -> ArtifactAdded:
        """Return the event of a chunk. The first chunk of an artifact replaces the one of an earlier attempt."""
        artifact_id = chunk.artifact_id or self.artifact_id
        append = artifact_id in self.artifact_ids if chunk.append is None else chunk.append
        self.artifact_ids.add(artifact_id)
        return ArtifactAdded(
            artifact=Artifact(
                artifact_id=artifact_id,
                parts=chunk.parts,
                name=chunk.name,
                description=chunk.description,
                metadata=chunk.metadata,
                extensions=chunk.extensions,
            ),
            append=append,
            last_chunk=chunk.last,
        )


def ends_run(action: Action) -> bool:
    """Return whether the action ends the run, so that later values of the agent are ignored."""
    return isinstance(action, Ask | Reply | Reject)


def merge(old: Event, new: Event) -> Event | None:
    """Return two text chunks of one artifact as one event; None if they must stay separate."""
    if not (isinstance(old, ArtifactAdded) and isinstance(new, ArtifactAdded)):
        return None
    first, second = old.artifact, new.artifact
    if not new.append or old.last_chunk or first.artifact_id != second.artifact_id or second.name or second.description:
        return None
    if second.metadata is not None or second.extensions or len(first.parts) != 1 or len(second.parts) != 1:
        return None
    if not continues(first.parts[0], second.parts[0]):
        return None
    text = (first.parts[0].text or "") + (second.parts[0].text or "")
    parts = (replace(first.parts[0], text=text),)
    return replace(old, artifact=replace(first, parts=parts), last_chunk=new.last_chunk)
