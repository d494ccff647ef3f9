"""The events of a stream as a caller of the client sees them."""

from msgspec import Struct

from a2a.events import ArtifactAdded, StatusChanged
from a2a.states import TERMINAL, TaskState
from a2a.types import Artifact, Message, Task


class Update(Struct, frozen=True, kw_only=True):
    """One event of a stream."""

    event: Task | Message | StatusChanged | ArtifactAdded
    """The task as it is, a bare reply, or a change."""
    task_id: str
    """Empty for a bare reply."""
    context_id: str
    id: str | None = None
    """The id by which the server can resume the stream after this event; None from a server without ids."""
    final: bool = False
    """The server says that the stream ends here (A2A 0.x)."""

    @property
    def text(self) -> str:
        """The text that the event adds to the answer: of a reply, of artifacts, of a piece of an artifact."""
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
        """The state that the task has now, if the event tells it."""
        match self.event:
            case Task(status=status) | StatusChanged(status=status):
                return status.state
            case _:
                return None

    @property
    def ends(self) -> bool:
        """Whether nothing can follow: the task has ended, or this is the only reply."""
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
