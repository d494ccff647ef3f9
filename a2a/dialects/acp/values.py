"""The data model in the JSON of ACP: parts, messages, artifacts and tasks.

ACP has members that the model lacks, such as the agentId of a caller's message. They are kept in the metadata, in a
member MARK, and put back on the way out.
"""

from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec import UNSET

from a2a.dialects.json.json_1_0 import decode_task
from a2a.dialects.json.members import MAX_PARTS
from a2a.documents import TaskDocument
from a2a.errors import InvalidParams
from a2a.params import read_base64, read_time, write_base64, write_time
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Task

MARK = "acp"
"""The member of metadata with what ACP has and the model lacks."""
STATES: dict[TaskState, str] = {
    TaskState.SUBMITTED: "SUBMITTED",
    TaskState.WORKING: "WORKING",
    TaskState.INPUT_REQUIRED: "INPUT_REQUIRED",
    TaskState.AUTH_REQUIRED: "INPUT_REQUIRED",
    TaskState.COMPLETED: "COMPLETED",
    TaskState.FAILED: "FAILED",
    TaskState.REJECTED: "FAILED",
    TaskState.CANCELED: "CANCELED",
}
"""The six states of ACP."""
NOTES: dict[TaskState, Json] = {
    TaskState.AUTH_REQUIRED: {"waitingFor": "authorization"},
    TaskState.REJECTED: {"reason": "rejected"},
}
"""Metadata of tasks whose state ACP does not have."""
ROLES = ("user", "agent", "system")
KINDS = ("TextPart", "DataPart", "FilePart", "ImagePart", "AudioPart")
ENCODINGS = ("base64", "utf8", "binary")
_PART = frozenset({"type", "content", "mimeType", "filename", "size", "encoding", "reference", "metadata"})
"""Members of a part that the model has a place for."""
_MESSAGE = ("timestamp", "agentId")
_FILES = {"image": "ImagePart", "audio": "AudioPart"}


# ------------------------------------------------------------------- parts


def decode_part(wire: Json, path: str) -> Part:
    """Return the part of members that have the right types. Raises InvalidParams for a content of another type."""
    kind, extra = wire["type"], {name: value for name, value in wire.items() if name not in _PART}
    metadata = wire.get("metadata")
    match kind:
        case "TextPart":
            part = Part(text=_text(wire, path), media_type=wire.get("mimeType"))
        case "DataPart":
            part = Part(data=wire.get("content"), media_type=wire.get("mimeType"))
        case _:
            part = _decode_file(wire, path)
            if kind != _kind_of(part):
                extra["type"] = kind
    marked = (metadata or {}) | {MARK: extra} if extra else metadata
    return Part(
        text=part.text,
        raw=part.raw,
        url=part.url,
        data=part.data,
        media_type=part.media_type,
        filename=wire.get("filename"),
        metadata=marked,
    )


def _text(wire: Json, path: str) -> str:
    content = wire.get("content")
    if not isinstance(content, str):
        raise InvalidParams((f"{path}.content", "is required" if content is None else "must be a string"))
    return content


def _decode_file(wire: Json, path: str) -> Part:
    """Return the part of a file: its bytes, or the address of a file without content. Raises InvalidParams."""
    if wire.get("content") is None:
        if not wire.get("reference"):
            raise InvalidParams((f"{path}.content", "must be a string, or the part must have a reference"))
        return Part(url=wire["reference"], media_type=wire.get("mimeType"))
    content, place = _text(wire, path), f"{path}.content"
    match wire.get("encoding"):
        case "utf8":
            raw = content.encode()
        case "binary":
            raw = _read_binary(content, place)
        case _:
            raw = read_base64(content, place)
    return Part(raw=raw, media_type=wire.get("mimeType"))


def _read_binary(content: str, field: str) -> bytes:
    """Return the bytes of a text with a character for each. Raises InvalidParams for a character above U+00FF."""
    try:
        return content.encode("latin-1")
    except UnicodeEncodeError:
        raise InvalidParams((field, "must be binary: one character from U+0000 to U+00FF for each byte")) from None


def _kind_of(part: Part) -> str:
    """Return the type of a part in ACP."""
    if part.text is not None:
        return "TextPart"
    if part.data is not UNSET:
        return "DataPart"
    return _FILES.get((part.media_type or "").partition("/")[0], "FilePart")


def encode_part(part: Part) -> Json:
    """Return a part."""
    marked, metadata = split_marked(part.metadata)
    out: Json = {"type": _kind_of(part)}
    if part.text is not None:
        out["content"] = part.text
    elif part.raw is not None:
        out |= {"content": write_base64(part.raw), "encoding": "base64", "size": len(part.raw)}
    elif part.url is not None:
        out |= {"content": None, "reference": part.url}
    else:
        out["content"] = part.data
    if part.media_type:
        out["mimeType"] = part.media_type
    if part.filename:
        out["filename"] = part.filename
    if metadata:
        out["metadata"] = metadata
    kind = marked.pop("type", None)
    if kind in KINDS and part.text is None and part.data is UNSET:
        out["type"] = kind
    return {name: value for name, value in marked.items() if name not in _PART} | out


def split_marked(metadata: Json | None) -> tuple[Json, Json]:
    """Return what ACP has and the model lacks, and the other metadata."""
    marked = (metadata or {}).get(MARK)
    if not isinstance(marked, dict):
        return {}, metadata or {}
    return dict(marked), {name: value for name, value in (metadata or {}).items() if name != MARK}


# ---------------------------------------------------------------- messages


def decode_message(wire: Json, path: str, task_id: str | None = None) -> Message:
    """Return the message of members that have the right types. Raises InvalidParams for wrong values.

    It is the caller's message, whatever its role. ACP has no message ids, so the operation assigns one.
    """
    if not wire["parts"]:
        raise InvalidParams((f"{path}.parts", "must be an array with at least one part"))
    if len(wire["parts"]) > MAX_PARTS:
        raise InvalidParams((f"{path}.parts", f"must be an array of {MAX_PARTS} parts at most"))
    read_time(wire.get("timestamp"), f"{path}.timestamp")
    marked: Json = {name: wire[name] for name in _MESSAGE if wire.get(name) is not None}
    if wire["role"] != "user":
        marked["role"] = wire["role"]
    return Message(
        message_id="",
        role=Role.USER,
        parts=tuple(decode_part(part, f"{path}.parts[{index}]") for index, part in enumerate(wire["parts"])),
        task_id=task_id,
        metadata={MARK: marked} if marked else None,
    )


def encode_message(message: Message, agent: str, time: datetime | None = None) -> Json:
    """Return a message of a task with this agent. The time is that of a message whose id has none."""
    marked, metadata = split_marked(message.metadata)
    out: Json = {"role": message.role.value, "parts": [encode_part(part) for part in message.parts]}
    if message.role is Role.USER:
        out["role"] = marked["role"] if marked.get("role") in ROLES else "user"
        out |= {name: marked[name] for name in _MESSAGE if isinstance(marked.get(name), str)}
    elif agent:
        out["agentId"] = agent
    if "timestamp" not in out and (at := time_of(message.message_id) or time):
        out["timestamp"] = write_time(at)
    return out | ({"metadata": metadata} if metadata else {})


def time_of(id: str) -> datetime | None:
    """Return the time with which a UUID of version 7 begins (RFC 9562, 5.7); None for any other id.

    Our ids are such UUIDs.
    """
    if len(id) != 36 or id[14] != "7":
        return None
    try:
        return datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


# ------------------------------------------------------------------- tasks


def encode_artifact(artifact: Artifact, agent: str) -> Json:
    """Return an artifact of a task with this agent. ACP requires a name, which is the id if the agent gave none."""
    out: Json = {"artifactId": artifact.artifact_id, "name": artifact.name or artifact.artifact_id}
    if artifact.description:
        out["description"] = artifact.description
    out["parts"] = [encode_part(part) for part in artifact.parts]
    if agent:
        out["createdBy"] = agent
    return out | ({"metadata": artifact.metadata} if artifact.metadata else {})


def encode_task(document: TaskDocument, *, messages: bool = True) -> Json:
    """Return a task. Its artifacts are absent if the document has none of them.

    The message of the current status is the newest message.
    """
    task: Task = decode_task(orjson.loads(bytes(document.json(None if messages else 0))))
    status, agent = task.status, document.agent
    out: Json = {
        "taskId": task.id,
        "status": STATES[status.state],
        "createdAt": write_time(time_of(task.id) or status.timestamp),
        "updatedAt": write_time(status.timestamp),
    }
    if agent:
        out["assignedAgent"] = agent
    if messages:
        out["messages"] = [encode_message(message, agent) for message in task.history]
        if status.message is not None:
            out["messages"].append(encode_message(status.message, agent, status.timestamp))
    if document.artifacts is not None:
        out["artifacts"] = [encode_artifact(artifact, agent) for artifact in task.artifacts]
    metadata: dict[str, Any] = (task.metadata or {}) | NOTES.get(status.state, {})
    return out | ({"metadata": metadata} if metadata else {})
