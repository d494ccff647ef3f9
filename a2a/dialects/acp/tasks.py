"""The task methods of ACP: their params, their requests and their results."""

from typing import Annotated, Any

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a.answers import Answer
from a2a.dialects.acp.values import ENCODINGS, KINDS, ROLES, STATES, decode_message, encode_task
from a2a.dialects.json.members import MAX_PARTS
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import TIME, Text, check, read_id, rule
from a2a.requests import CancelTask, GetTask, Priority, SendMessage
from a2a.types import Json

_TIMES = rule(format="date-time")

# ---------------------------------------------------------------- requests


class PartParams(Struct, rename="camel"):
    type: Annotated[str, rule(enum=list(KINDS))]
    content: Any | UnsetType = UNSET
    mime_type: str | None = None
    filename: str | None = None
    size: int | None = None
    encoding: Annotated[str | None, rule(enum=[None, *ENCODINGS])] = None
    reference: str | None = None
    metadata: Json | None = None


class MessageParams(Struct, rename="camel"):
    role: Annotated[str, rule(enum=list(ROLES))]
    parts: Annotated[list[PartParams], rule(minItems=1, maxItems=MAX_PARTS)]
    timestamp: Annotated[str | None, rule(format="date-time", pattern=TIME)] = None
    agent_id: str | None = None


class CreateParams(Struct, rename="camel"):
    initial_message: MessageParams
    assign_to: str | None = None
    priority: Annotated[str | None, rule(enum=[None, *Priority.__members__])] = None
    metadata: Json | None = None


class SendParams(Struct, rename="camel"):
    task_id: Text
    message: MessageParams


class GetParams(Struct, rename="camel"):
    task_id: Text
    include_messages: bool | None = None
    include_artifacts: bool | None = None


class CancelParams(Struct, rename="camel"):
    task_id: Text
    reason: str | None = None


def decode_create(params: Any) -> SendMessage:
    """Decode the params of tasks.create. Raises InvalidParams."""
    wire = check(params, CreateParams)
    priority = wire.get("priority")
    if priority is not None:
        _check_word(priority, "priority", tuple(Priority.__members__))
    return SendMessage(
        message=decode_message(message_in(wire, "initialMessage"), "initialMessage"),
        return_immediately=True,
        queued=True,
        agent=wire.get("assignTo"),
        priority=Priority.NORMAL if priority is None else Priority[priority],
        metadata=wire.get("metadata"),
    )


def decode_send(params: Any) -> SendMessage:
    """Decode the params of tasks.send. Raises InvalidParams."""
    wire = check(params, SendParams)
    message = decode_message(message_in(wire, "message"), "message", read_id(wire, "taskId"))
    return SendMessage(message=message, return_immediately=True)


def decode_get(params: Any) -> GetTask:
    """Decode the params of tasks.get. Raises InvalidParams."""
    wire = check(params, GetParams)
    return GetTask(
        id=read_id(wire, "taskId"),
        history_length=0 if wire.get("includeMessages") is False else None,
        include_artifacts=wire.get("includeArtifacts") is not False,
    )


def decode_cancel(params: Any) -> CancelTask:
    """Decode the params of tasks.cancel. Raises InvalidParams."""
    wire = check(params, CancelParams)
    reason = wire.get("reason")
    return CancelTask(id=read_id(wire, "taskId"), repeatable=True, metadata={"reason": reason} if reason else None)


def message_in(wire: Json, name: str) -> Json:
    """Return the message of the params once its words are those of ACP. Raises InvalidParams."""
    message: Json = wire[name]
    _check_word(message["role"], f"{name}.role", ROLES)
    for index, part in enumerate(message["parts"]):
        _check_word(part["type"], f"{name}.parts[{index}].type", KINDS)
        if part.get("encoding") is not None:
            _check_word(part["encoding"], f"{name}.parts[{index}].encoding", ENCODINGS)
    return message


def _check_word(value: str, field: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise InvalidParams((field, f"must be one of {', '.join(words)}"))


# ----------------------------------------------------------------- answers


class Part(Struct, rename="camel"):
    """A piece of content. Further members are kept as they were sent."""

    type: Annotated[str, rule(enum=list(KINDS))]
    content: Any = None
    mime_type: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    encoding: Annotated[str, rule(enum=list(ENCODINGS))] | UnsetType = UNSET
    reference: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class Message(Struct, rename="camel"):
    """A message of a caller or an agent."""

    role: Annotated[str, rule(enum=list(ROLES))]
    parts: Annotated[list[Part], rule(minItems=1)]
    timestamp: Annotated[str, _TIMES] | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class Artifact(Struct, rename="camel"):
    """A result of a task."""

    artifact_id: str
    name: str
    parts: list[Part]
    description: str | UnsetType = UNSET
    created_by: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class Task(Struct, rename="camel"):
    """A TaskObject."""

    task_id: str
    status: Annotated[str, rule(enum=sorted(set(STATES.values())))]
    created_at: Annotated[str, _TIMES]
    updated_at: Annotated[str, _TIMES]
    assigned_agent: str | UnsetType = UNSET
    messages: list[Message] | UnsetType = UNSET
    artifacts: list[Artifact] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class TaskResult(Struct):
    """The result of a task method."""

    type: Annotated[str, rule(enum=["task"])]
    task: Task


def encode_answer(answer: Answer) -> bytes:
    """Return a task in its wrapper. A history length of 0 leaves the messages out."""
    if answer.task is None:
        raise ValueError("the answer has no task")
    return orjson.dumps({"type": "task", "task": encode_task(answer.task, messages=answer.history_length != 0)})


METHODS = {
    "tasks.create": Method(
        request=SendMessage,
        decode=decode_create,
        encode=encode_answer,
        message="initialMessage",
        params=CreateParams,
        result=TaskResult,
    ),
    "tasks.send": Method(
        request=SendMessage, decode=decode_send, encode=encode_answer, params=SendParams, result=TaskResult
    ),
    "tasks.get": Method(request=GetTask, decode=decode_get, encode=encode_answer, params=GetParams, result=TaskResult),
    "tasks.cancel": Method(
        request=CancelTask, decode=decode_cancel, encode=encode_answer, params=CancelParams, result=TaskResult
    ),
}
"""The methods of tasks."""
