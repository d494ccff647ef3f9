"""The data model in the JSON of A2A 1.0 (ProtoJSON of lf.a2a.v1), both ways; tasks are stored in it too."""

from collections.abc import Iterable
from typing import Any

import orjson
from msgspec import UNSET

from a2a.dialects.json.members import artifact_members, message_members, message_of
from a2a.dialects.params import camel_names, read_base64, read_time, write_base64, write_time
from a2a.documents import EventDocument, EventKind, TaskDocument, quote
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated, status_of
from a2a.mistakes import not_json
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task

STATES = {state: f"TASK_STATE_{state.name}" for state in TaskState}
_NUMBERED = (
    None,
    TaskState.SUBMITTED,
    TaskState.WORKING,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELED,
    TaskState.INPUT_REQUIRED,
    TaskState.REJECTED,
    TaskState.AUTH_REQUIRED,
)
_STATES_BACK: dict[Any, TaskState | None] = {
    "TASK_STATE_UNSPECIFIED": None,
    **{name: state for state, name in STATES.items()},
    **dict(enumerate(_NUMBERED)),
}
ROLES = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}
# ProtoJSON parsers take the numbers of an enum as well.
_ROLES_BACK: dict[str | int, Role] = {"ROLE_USER": Role.USER, "ROLE_AGENT": Role.AGENT, 1: Role.USER, 2: Role.AGENT}
_CONTENTS = ("text", "raw", "url", "data")


def dumps(value: Any) -> str:
    """JSON text, as stored."""
    return orjson.dumps(value).decode()


def _dumps_each(values: Iterable[Any]) -> str:
    """JSON text of a list, one member after the other: all of them at once may keep other threads waiting for long."""
    members = [text for value in values for text in (",", dumps(value))]
    return "".join(["[", *members[1:], "]"])


def encode_part(part: Part) -> Json:
    out: Json = {}
    if part.text is not None:
        out["text"] = part.text
    elif part.raw is not None:
        out["raw"] = write_base64(part.raw)
    elif part.url is not None:
        out["url"] = part.url
    else:
        out["data"] = part.data
    if part.filename:
        out["filename"] = part.filename
    if part.media_type:
        out["mediaType"] = part.media_type
    if part.metadata is not None:
        out["metadata"] = part.metadata
    return out


def decode_part(wire: Json, path: str = "part") -> Part:
    """A part whose members have the right types. Raises InvalidParams unless it has exactly one content."""
    wire = camel_names(wire)
    # In `data` null is a value; elsewhere it means unset (docs/protocol.md#json).
    contents = [name for name in _CONTENTS if name in wire and (wire[name] is not None or name == "data")]
    if len(contents) != 1:
        found = ", ".join(contents) or "none of them"
        raise InvalidParams((path, f"must have exactly one of text, raw, url, data; it has {found}"))
    raw = wire.get("raw")
    return Part(
        text=wire.get("text"),
        raw=None if raw is None else read_base64(raw, f"{path}.raw"),
        url=wire.get("url"),
        data=wire["data"] if contents == ["data"] else UNSET,
        filename=wire.get("filename"),
        media_type=wire.get("mediaType"),
        metadata=wire.get("metadata"),
    )


def encode_message(message: Message) -> Json:
    return message_members(message, ROLES[message.role], encode_part)


def decode_message(wire: Json, path: str = "message") -> Message:
    """A message whose members have the right types. Raises InvalidParams."""
    return message_of(camel_names(wire), path, _ROLES_BACK, decode_part)


def encode_artifact(artifact: Artifact) -> Json:
    return artifact_members(artifact, encode_part)


def decode_artifact(wire: Json) -> Artifact:
    return Artifact(
        artifact_id=wire["artifactId"],
        parts=tuple(decode_part(part) for part in wire["parts"]),
        name=wire.get("name"),
        description=wire.get("description"),
        metadata=wire.get("metadata"),
        extensions=tuple(wire.get("extensions") or ()),
    )


def encode_status(status: Status) -> Json:
    out: Json = {"state": STATES[status.state], "timestamp": write_time(status.timestamp)}
    if status.message is not None:
        out["message"] = encode_message(status.message)
    return out


def decode_status(wire: Json) -> Status:
    state, time = decode_state(wire["state"], "status.state"), read_time(wire["timestamp"], "status.timestamp")
    message = wire.get("message")
    if state is None or time is None:
        raise InvalidParams(("status", "must have a state and a timestamp"))
    return Status(state=state, timestamp=time, message=message and decode_message(message))


def decode_state(wire: str | int | None, field: str) -> TaskState | None:
    """A state by name or number; None if unspecified."""
    if wire is None:
        return None
    if isinstance(wire, bool) or wire not in _STATES_BACK:
        raise InvalidParams((field, f"must be one of {', '.join(STATES.values())}"))
    return _STATES_BACK[wire]


def encode_task(task: Task) -> Json:
    return orjson.loads(document(task, 0).json())  # type: ignore[no-any-return]  # an object by construction


def decode_task(wire: Json) -> Task:
    return Task(
        id=wire["id"],
        context_id=wire["contextId"],
        status=decode_status(wire["status"]),
        artifacts=tuple(decode_artifact(artifact) for artifact in wire.get("artifacts") or ()),
        history=tuple(decode_message(message) for message in wire.get("history") or ()),
        metadata=wire.get("metadata"),
    )


def document(task: Task, seq: int) -> TaskDocument:
    """The task in the pieces in which it is stored."""
    return TaskDocument(
        id=task.id,
        context_id=task.context_id,
        seq=seq,
        state=task.status.state.value,
        status=dumps(encode_status(task.status)),
        artifacts=_dumps_each(encode_artifact(artifact) for artifact in task.artifacts),
        history=_dumps_each(encode_message(message) for message in task.history),
        metadata=None if task.metadata is None else dumps(task.metadata),
    )


def task_of(stored: TaskDocument) -> Task:
    """The value of a document; what it leaves out is empty."""
    return decode_task(orjson.loads(stored.json()))


def event_document(event: Event, *, task_id: str, context_id: str, seq: int) -> EventDocument:
    """The row of an event."""
    kind, payload = _encode_event(event)
    status = status_of(event)
    return EventDocument(
        task_id=task_id,
        context_id=context_id,
        seq=seq,
        kind=kind,
        payload=payload,
        state=None if status is None else status.state.value,
    )


def check_encodable(event: Event) -> None:
    """Raises WrongValue for content that JSON cannot hold: at the yield that gave it, not when it is written."""
    try:
        _encode_event(event)
    except TypeError as error:
        raise not_json(error) from None


def _encode_event(event: Event) -> tuple[EventKind, str]:
    match event:
        case TaskCreated(task=task):
            return "task", document(task, 1).json().decode()
        case StatusChanged(status=status):
            return "statusUpdate", f'{{"status":{dumps(encode_status(status))}}}'
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk):
            flags = (',"append":true' if append else "") + (',"lastChunk":true' if last_chunk else "")
            return "artifactUpdate", f'{{"artifact":{dumps(encode_artifact(artifact))}{flags}}}'
        case MessageAdded(message=message, status=status):
            said = "" if status is None else f',"status":{dumps(encode_status(status))}'
            return "message", f'{{"message":{dumps(encode_message(message))}{said}}}'


def event_of(stored: EventDocument) -> Event:
    """The value of a row of the log."""
    wire = orjson.loads(stored.payload)
    match stored.kind:
        case "task":
            return TaskCreated(task=decode_task(wire))
        case "statusUpdate":
            return StatusChanged(status=decode_status(wire["status"]))
        case "artifactUpdate":
            return ArtifactAdded(
                artifact=decode_artifact(wire["artifact"]),
                append=wire.get("append", False),
                last_chunk=wire.get("lastChunk", False),
            )
        case "message":
            message, status = decode_message(wire["message"]), wire.get("status")
            return MessageAdded(message=message, status=status and decode_status(status))


def status_frame(stored: EventDocument) -> bytes | None:
    """Return the status that a caller's own message brought, as a stream shows it; None if it brought none."""
    wire = orjson.loads(stored.payload)
    if (status := wire.get("status")) is None:
        return None
    ids = f'"taskId":{quote(stored.task_id)},"contextId":{quote(stored.context_id)}'
    return f'{{"statusUpdate":{{{ids},"status":{dumps(status)}}}}}'.encode()
