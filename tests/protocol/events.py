"""Events of a task, for tests of what becomes of it."""

from datetime import UTC, datetime
from typing import Any

from a2a.events import ArtifactAdded
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, Role, Status, Task

NOW = datetime(2026, 3, 2, 9, 15, 5, 250_000, tzinfo=UTC)
LATER = NOW.replace(hour=10)


def message(words: str, role: Role = Role.USER) -> Message:
    return Message(message_id=words, role=role, parts=(Part(text=words),))


def status(state: TaskState, said: str | None = None) -> Status:
    return Status(state=state, timestamp=LATER, message=message(said, Role.AGENT) if said else None)


def chunk(words: str, artifact_id: str = "a", *, append: bool = False, **more: Any) -> ArtifactAdded:
    artifact = Artifact(artifact_id=artifact_id, parts=(Part(text=words),), **more)
    return ArtifactAdded(artifact=artifact, append=append)


NEW = Task(
    id="t",
    context_id="c",
    status=Status(state=TaskState.SUBMITTED, timestamp=NOW),
    history=(message("hello"),),
)
