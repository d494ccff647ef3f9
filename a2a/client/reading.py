"""The data model, read from the JSON of a server: lenient where versions and servers differ, strict about types.

What a server may leave out, and the model has no None for, gets a neutral value: an empty id, the time UNDATED.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from a2a.client.updates import Update
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, StatusChanged
from a2a.params import read_time
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, PushConfig, Role, Status, Task

UNDATED = datetime.fromtimestamp(0, UTC)
"""The time of a status without a timestamp."""
_PLAIN = (bytes, datetime)


class Form(Struct, frozen=True, kw_only=True):
    """One JSON form of the data model."""

    part: Callable[[Json, str], Part]
    roles: Mapping[str | int, Role]
    state: Callable[[Any, str], TaskState | None]
    parts: str = "parts"
    """The member with the parts of a message."""

    def message(self, wire: Json) -> Message:
        role = self.roles.get(wire["role"])
        if role is None:
            raise InvalidParams(("message.role", f"must be one of {', '.join(map(str, self.roles))}"))
        return Message(
            message_id=wire.get("messageId") or "",
            role=role,
            parts=self._parts(wire.get(self.parts)),
            context_id=wire.get("contextId") or None,
            task_id=wire.get("taskId") or None,
            metadata=wire.get("metadata"),
            extensions=tuple(wire.get("extensions") or ()),
            reference_task_ids=tuple(wire.get("referenceTaskIds") or ()),
        )

    def artifact(self, wire: Json) -> Artifact:
        return Artifact(
            artifact_id=wire["artifactId"],
            parts=self._parts(wire.get("parts")),
            name=wire.get("name"),
            description=wire.get("description"),
            metadata=wire.get("metadata"),
            extensions=tuple(wire.get("extensions") or ()),
        )

    def _parts(self, wire: list[Json] | None) -> tuple[Part, ...]:
        return tuple(self.part(part, f"parts[{place}]") for place, part in enumerate(wire or ()))

    def status(self, wire: Json) -> Status:
        state = self.state(wire["state"], "status.state")
        if state is None:
            raise InvalidParams(("status.state", "must be the state of a task, not unknown"))
        message = wire.get("message") or wire.get("update")
        return Status(
            state=state, timestamp=_time(wire.get("timestamp")), message=self.message(message) if message else None
        )

    def task(self, wire: Json) -> Task:
        return Task(
            id=wire["id"],
            context_id=wire.get("contextId") or "",
            status=self.status(wire["status"]),
            artifacts=tuple(self.artifact(artifact) for artifact in wire.get("artifacts") or ()),
            history=tuple(self.message(message) for message in wire.get("history") or ()),
            metadata=wire.get("metadata"),
        )

    def status_update(self, wire: Json) -> Update:
        return Update(
            task_id=wire["taskId"],
            context_id=wire.get("contextId") or "",
            event=StatusChanged(status=self.status(wire["status"])),
            final=wire.get("final") is True,
        )

    def artifact_update(self, wire: Json) -> Update:
        event = ArtifactAdded(
            artifact=self.artifact(wire["artifact"]),
            append=wire.get("append") or False,
            last_chunk=wire.get("lastChunk") or False,
        )
        return Update(task_id=wire["taskId"], context_id=wire.get("contextId") or "", event=event)

    def task_update(self, wire: Json) -> Update:
        task = self.task(wire)
        return Update(task_id=task.id, context_id=task.context_id, event=task)

    def message_update(self, wire: Json) -> Update:
        message = self.message(wire)
        return Update(task_id=message.task_id or "", context_id=message.context_id or "", event=message)

    def update(self, wire: Json) -> Update:
        """Return the update that is the one member of an object."""
        decoders = {
            "task": self.task_update,
            "message": self.message_update,
            "statusUpdate": self.status_update,
            "artifactUpdate": self.artifact_update,
        }
        (name,) = [name for name in decoders if wire.get(name) is not None]
        return decoders[name](wire[name])


def _time(text: str | None) -> datetime:
    """Return the time of a status. A time without a zone, as some servers send it, is in UTC."""
    if not text:
        return UNDATED
    has_zone = text[-1] in "Zz" or "+" in text[10:] or "-" in text[10:]
    return read_time(text if has_zone else text + "Z", "status.timestamp") or UNDATED


def config(wire: Json, task_id: str, schemes: tuple[str, ...]) -> PushConfig:
    """Return a webhook. Answers never contain its credentials."""
    return PushConfig(
        id=wire.get("id"), task_id=task_id, url=wire["url"], token=wire.get("token") or None, schemes=schemes
    )


def check_types(value: Any) -> None:
    """Raise msgspec.ValidationError if a member of a value has another type than in the model."""
    if value is not None:
        plain = msgspec.to_builtins(value, builtin_types=_PLAIN)
        msgspec.convert(plain, type(value), builtin_types=_PLAIN)
