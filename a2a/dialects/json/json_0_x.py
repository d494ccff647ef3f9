"""The data model in the JSON of A2A 0.2 and 0.3, where a member `kind` names the type of an object."""

from typing import assert_never

from a2a.dialects.json.members import artifact_members, message_members, message_of
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.params import read_base64, write_base64, write_time
from a2a.states import TERMINAL, TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task

STATES = {state: state.value.replace("_", "-") for state in TaskState}
STATES_BACK: dict[str, TaskState | None] = {"unknown": None} | {name: state for state, name in STATES.items()}

ROLES: dict[str | int, Role] = {role.value: role for role in Role}

FINAL = TERMINAL | {TaskState.INPUT_REQUIRED}
"""States that end a stream (docs/protocol.md#streams)."""

COMPAT = "data_part_compat"
"""The metadata key of a data part whose value is no object. Its value is sent as {"value": ...}, since 0.x has only
objects."""

_CONTENTS = ("text", "file", "data")
# Samples of the A2A project have `data` where the schema says `bytes`.
_FILES = ("bytes", "data", "uri")


def encode_part(part: Part) -> Json:
    """Return a part of 0.x."""
    out = _content(part)
    metadata = part.metadata
    if out["kind"] == "data" and not isinstance(part.data, dict):
        out["data"] = {"value": part.data}
        metadata = (metadata or {}) | {COMPAT: True}
    if metadata is not None:
        out["metadata"] = metadata
    return out


def _content(part: Part) -> Json:
    """Return the kind of a part and its content."""
    if part.text is not None:
        return {"kind": "text", "text": part.text}
    if part.raw is None and part.url is None:
        return {"kind": "data", "data": part.data}
    file: Json = {"uri": part.url} if part.raw is None else {"bytes": write_base64(part.raw)}
    if part.filename:
        file["name"] = part.filename
    if part.media_type:
        file["mimeType"] = part.media_type
    return {"kind": "file", "file": file}


def decode_part(wire: Json, path: str) -> Part:
    """Return the part of members that have the right types. Raises InvalidParams unless it has exactly one content."""
    content = _only(wire, _CONTENTS, path)
    # Older clients call the member `type`, and samples of the A2A project omit it (docs/protocol.md#leniency).
    tag = "kind" if wire.get("kind") is not None else "type"
    if wire.get(tag) not in (None, content):
        raise InvalidParams((f"{path}.{tag}", f'must be "{content}" in a part that has {content}'))
    metadata = wire.get("metadata")
    if content == "text":
        return Part(text=wire["text"], metadata=metadata)
    if content == "data":
        return _decode_data(wire["data"], metadata)
    return _decode_file(wire["file"], metadata, f"{path}.file")


def _decode_file(file: Json, metadata: Json | None, path: str) -> Part:
    """Return the part of a file. Raises InvalidParams unless it has exactly one content."""
    content = _only(file, _FILES, path)
    return Part(
        raw=None if content == "uri" else read_base64(file[content], f"{path}.{content}"),
        url=file["uri"] if content == "uri" else None,
        filename=file.get("name"),
        media_type=file.get("mimeType"),
        metadata=metadata,
    )


def _decode_data(data: Json, metadata: Json | None) -> Part:
    """Return the part of data, which may have COMPAT in its metadata."""
    if metadata and metadata.get(COMPAT) is True and data.keys() == {"value"}:
        rest = {name: value for name, value in metadata.items() if name != COMPAT}
        return Part(data=data["value"], metadata=rest or None)
    return Part(data=data, metadata=metadata)


def _only(wire: Json, names: tuple[str, ...], path: str) -> str:
    """Return the only one of these names that is a member. A member that is null counts as absent.

    Raises InvalidParams for none and for several.
    """
    members = [name for name in names if wire.get(name) is not None]
    if len(members) != 1:
        has = ", ".join(members) or "none of them"
        raise InvalidParams((path, f"must have exactly one of {', '.join(names)}; it has {has}"))
    return members[0]


def encode_message(message: Message) -> Json:
    """Return a message of 0.x."""
    return {"kind": "message"} | message_members(message, message.role.value, encode_part)


def decode_message(wire: Json, path: str = "message") -> Message:
    """Return the message of members that have the right types. Raises InvalidParams for wrong values."""
    if wire.get("kind") not in (None, "message"):
        raise InvalidParams((f"{path}.kind", 'must be "message"'))
    return message_of(wire, path, ROLES, decode_part)


def encode_artifact(artifact: Artifact) -> Json:
    """Return an artifact of 0.x."""
    return artifact_members(artifact, encode_part)


def encode_status(status: Status) -> Json:
    """Return a status of 0.x."""
    out: Json = {"state": STATES[status.state], "timestamp": write_time(status.timestamp)}
    if status.message is not None:
        out["message"] = encode_message(status.message)
    return out


def decode_state(wire: str | None, field: str) -> TaskState | None:
    """Return the state of a name; None if it is absent or `unknown`. Raises InvalidParams for any other text."""
    if wire is None:
        return None
    if wire not in STATES_BACK:
        raise InvalidParams((field, f"must be one of {', '.join(STATES_BACK)}"))
    return STATES_BACK[wire]


def encode_task(task: Task) -> Json:
    """Return a task of 0.x."""
    out: Json = {
        "kind": "task",
        "id": task.id,
        "contextId": task.context_id,
        "status": encode_status(task.status),
    }
    if task.artifacts:
        out["artifacts"] = [encode_artifact(artifact) for artifact in task.artifacts]
    if task.history:
        out["history"] = [encode_message(message) for message in task.history]
    out["metadata"] = task.metadata or {}
    return out


def encode_event(event: Event, *, task_id: str, context_id: str) -> Json | None:
    """Return the event as a stream shows it; None for a caller's message that sets no status."""
    ids: Json = {"taskId": task_id, "contextId": context_id}
    match event:
        case TaskCreated(task=task):
            return encode_task(task)
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk):
            chunk: Json = {"artifact": encode_artifact(artifact), "append": append, "lastChunk": last_chunk}
            return {"kind": "artifact-update"} | ids | chunk
        case StatusChanged(status=status) | MessageAdded(status=status):
            if status is None:
                return None
            change: Json = {"status": encode_status(status), "final": status.state in FINAL}
            return {"kind": "status-update"} | ids | change
        case _:
            assert_never(event)
