"""The data model in the JSON of A2A 1.0 (ProtoJSON of lf.a2a.v1): encoders, decoders, and the stored form of tasks."""

from collections.abc import Iterable
from typing import Any, assert_never

import orjson
from msgspec import UNSET

from a2a.dialects.json.members import artifact_members, message_members, message_of
from a2a.documents import EventDocument, EventKind, TaskDocument, quote
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated, status_of
from a2a.mistakes import not_json
from a2a.params import camel_names, read_base64, read_time, write_base64, write_time
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task

STATES = {state: f"TASK_STATE_{state.name}" for state in TaskState}
# The numbers of the protobuf's enum; 0 is unspecified. ProtoJSON parsers accept them as well as the names.
_BY_NUMBER = (
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
STATES_BACK: dict[Any, TaskState | None] = {
    "TASK_STATE_UNSPECIFIED": None,
    **{name: state for state, name in STATES.items()},
    **dict(enumerate(_BY_NUMBER)),
}
ROLES = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}
ROLES_BACK: dict[str | int, Role] = {"ROLE_USER": Role.USER, "ROLE_AGENT": Role.AGENT, 1: Role.USER, 2: Role.AGENT}
_CONTENTS = ("text", "raw", "url", "data")


def dumps(value: Any) -> str:
    """Return the JSON text of a value, as it is stored."""
    return orjson.dumps(value).decode()


def _dumps_each(values: Iterable[Any]) -> str:
    """Return the JSON text of a list. Its members are encoded one by one, since one long call stops other threads."""
    return f"[{','.join([dumps(value) for value in values])}]"


def encode_part(part: Part) -> Json:
    """Return a Part (A2A 1.0, 4.1.6)."""
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
    """Return the part of members that have the right types. Raises InvalidParams unless it has exactly one content."""
    wire = camel_names(wire)
    # Null is a value in `data`, and means absent in all other members (docs/protocol.md#json).
    contents = [name for name in _CONTENTS if name in wire and (wire[name] is not None or name == "data")]
    if len(contents) != 1:
        names = ", ".join(contents) or "none of them"
        raise InvalidParams((path, f"must have exactly one of text, raw, url, data; it has {names}"))
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
    """Return a Message (A2A 1.0, 4.1.4)."""
    return message_members(message, ROLES[message.role], encode_part)


def decode_message(wire: Json, path: str = "message") -> Message:
    """Return the message of members that have the right types. Raises InvalidParams for wrong values."""
    return message_of(camel_names(wire), path, ROLES_BACK, decode_part)


def encode_artifact(artifact: Artifact) -> Json:
    """Return an Artifact (A2A 1.0, 4.1.7)."""
    return artifact_members(artifact, encode_part)


def decode_artifact(wire: Json) -> Artifact:
    """Return a stored artifact."""
    return Artifact(
        artifact_id=wire["artifactId"],
        parts=tuple(decode_part(part) for part in wire["parts"]),
        name=wire.get("name"),
        description=wire.get("description"),
        metadata=wire.get("metadata"),
        extensions=tuple(wire.get("extensions") or ()),
    )


def encode_status(status: Status) -> Json:
    """Return a TaskStatus (A2A 1.0, 4.1.2)."""
    out: Json = {"state": STATES[status.state], "timestamp": write_time(status.timestamp)}
    if status.message is not None:
        out["message"] = encode_message(status.message)
    return out


def decode_status(wire: Json) -> Status:
    """Return a stored status. Raises InvalidParams without state or timestamp."""
    state, time = decode_state(wire["state"], "status.state"), read_time(wire["timestamp"], "status.timestamp")
    message = wire.get("message")
    if state is None or time is None:
        raise InvalidParams(("status", "must have a state and a timestamp"))
    return Status(state=state, timestamp=time, message=message and decode_message(message))


def decode_state(wire: str | int | None, field: str) -> TaskState | None:
    """Return the state of a name or a number; None if it is absent or unspecified. Raises InvalidParams."""
    if wire is None:
        return None
    if isinstance(wire, bool) or wire not in STATES_BACK:
        raise InvalidParams((field, f"must be one of {', '.join(STATES.values())}"))
    return STATES_BACK[wire]


def encode_task(task: Task) -> Json:
    """Return a Task (A2A 1.0, 4.1.1)."""
    return orjson.loads(bytes(document(task, 0).json()))  # type: ignore[no-any-return]  # an object by construction


def decode_task(wire: Json) -> Task:
    """Return a stored task."""
    return Task(
        id=wire["id"],
        context_id=wire["contextId"],
        status=decode_status(wire["status"]),
        artifacts=tuple(decode_artifact(artifact) for artifact in wire.get("artifacts") or ()),
        history=tuple(decode_message(message) for message in wire.get("history") or ()),
        metadata=wire.get("metadata"),
    )


def document(task: Task, seq: int, agent: str = "") -> TaskDocument:
    """Return the stored form of a task of this agent as of a sequence number."""
    return TaskDocument(
        id=task.id,
        context_id=task.context_id,
        seq=seq,
        state=task.status.state.value,
        status=dumps(encode_status(task.status)),
        artifacts=_dumps_each(map(encode_artifact, task.artifacts)),
        history=_dumps_each(map(encode_message, task.history)),
        metadata=None if task.metadata is None else dumps(task.metadata),
        agent=agent,
    )


def task_of(task: TaskDocument) -> Task:
    """Return the task of a document. Members that the document lacks are empty."""
    return decode_task(orjson.loads(bytes(task.json())))


def event_document(event: Event, *, task_id: str, context_id: str, seq: int) -> EventDocument:
    """Return the stored form of an event."""
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


def encoded_size(event: Event) -> int:
    """Return the number of characters of an event as stored. Raises WrongValue for content that JSON cannot hold.

    Runners call it at each yield, so that the error names the line of the yield. When the event is written later, that
    line is unknown.
    """
    try:
        return len(_encode_event(event)[1])
    except TypeError as error:
        raise not_json(error) from None


def _encode_event(event: Event) -> tuple[EventKind, str]:
    """Return the kind and the payload of an event's stored form."""
    match event:
        case TaskCreated(task=task):
            return "task", bytes(document(task, 1).json()).decode()
        case StatusChanged(status=status):
            return "statusUpdate", f'{{"status":{dumps(encode_status(status))}}}'
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk):
            flags = (',"append":true' if append else "") + (',"lastChunk":true' if last_chunk else "")
            return "artifactUpdate", f'{{"artifact":{dumps(encode_artifact(artifact))}{flags}}}'
        case MessageAdded(message=message, status=status):
            member = "" if status is None else f',"status":{dumps(encode_status(status))}'
            return "message", f'{{"message":{dumps(encode_message(message))}{member}}}'
        case _:
            assert_never(event)


def event_of(row: EventDocument) -> Event:
    """Return the event of a row of the log."""
    wire = orjson.loads(row.payload)
    match row.kind:
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
        case _:
            assert_never(row.kind)


def status_frame(row: EventDocument) -> bytes | None:
    """Return the status that a caller's message sets, as a stream shows it; None if it sets none."""
    wire = orjson.loads(row.payload)
    if (status := wire.get("status")) is None:
        return None
    ids = f'"taskId":{quote(row.task_id)},"contextId":{quote(row.context_id)}'
    return f'{{"statusUpdate":{{{ids},"status":{dumps(status)}}}}}'.encode()
