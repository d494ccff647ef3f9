"""The events of a stream, as the client yields them."""

from msgspec import Struct

from a2a.events import ArtifactAdded, StatusChanged
from a2a.states import TERMINAL, TaskState
from a2a.types import Artifact, Message, Task


class Update(Struct, frozen=True, kw_only=True):
    """One event of a stream."""

    event: Task | Message | StatusChanged | ArtifactAdded
    """The task as it is, a direct reply, or a change."""
    task_id: str
    """Empty for a direct reply."""
    context_id: str
    id: str | None = None
    """The id with which the stream can be resumed after this event; None if the server sends no ids."""
    final: bool = False
    """True if the server ends the stream with this event (A2A 0.x)."""

    @property
    def text(self) -> str:
        """The text that the event adds: that of a reply, of artifacts, or of a chunk of an artifact."""
        match self.event:
            case Message() as message:
                return message.text
            case Task(artifacts=artifacts):
                return text_of(*artifacts)
            case ArtifactAdded(artifact=artifact):
                return text_of(artifact)
            case StatusChanged():
                return ""

    @property
    def state(self) -> TaskState | None:
        """The state of the task, if the event has it."""
        match self.event:
            case Task(status=status) | StatusChanged(status=status):
                return status.state
            case _:
                return None

    @property
    def ends(self) -> bool:
        """True if no event can follow: the task has ended, or the event is a direct reply."""
        return isinstance(self.event, Message) or self.state in TERMINAL


def text_of(*values: Task | Message | Artifact) -> str:
    """Return the text of replies, artifacts, or of the artifacts of tasks."""
    texts = []
    for value in values:
        if isinstance(value, Task):
            texts += [text_of(artifact) for artifact in value.artifacts]
        else:
            texts.append("".join(part.text for part in value.parts if part.text is not None))
    return "".join(texts)
