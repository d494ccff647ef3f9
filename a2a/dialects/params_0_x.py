"""The params of A2A 0.2 and 0.3: their types, and the decoders that make requests of them.

The decoders are lenient, since samples of the A2A project leave out `kind`; the encoders are strict. The params of
webhooks are in webhooks.py.
"""

from typing import Annotated, Any, TypeVar

from msgspec import Struct

from a2a.dialects import webhook_fields, webhooks
from a2a.dialects.json.json_0_x import STATES_BACK, decode_message, decode_state
from a2a.dialects.json.members import MAX_PARTS
from a2a.dialects.params_1_0 import MAX_PAGE
from a2a.errors import InvalidParams
from a2a.params import INT32, NAMES_TASK, Base64, Text, check, or_empty, read_whole, rule
from a2a.requests import CancelTask, GetExtendedCard, GetTask, ListTasks, SendMessage, SubscribeToTask
from a2a.types import Json


def _has(name: str, **members: Any) -> Json:
    """Return the schema of an object that has this member, and further members with these schemas."""
    return {"type": "object", "required": [name], "properties": {name: {"not": {"type": "null"}}} | members}


_ONE_FILE = rule(oneOf=[{"type": "null"}, *(_has(name) for name in ("bytes", "data", "uri"))])
_ONE_PART = rule(oneOf=[_has(name, kind={"enum": [name, None]}) for name in ("text", "file", "data")])
_NUMBER = rule(multipleOf=1, minimum=0, maximum=INT32)


class FileParams(Struct, rename="camel"):
    bytes: Base64 | None = None
    data: Base64 | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None


class PartParams(Struct, rename="camel"):
    kind: str | None = None
    text: str | None = None
    file: Annotated[FileParams | None, _ONE_FILE] = None
    data: Json | None = None
    metadata: Json | None = None


class MessageParams(Struct, rename="camel"):
    message_id: Text
    role: Annotated[str, rule(enum=["user"])]
    parts: Annotated[list[Annotated[PartParams, _ONE_PART]], rule(minItems=1, maxItems=MAX_PARTS)]
    kind: Annotated[str | None, rule(enum=["message", None])] = None
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: list[str] | None = None
    reference_task_ids: list[str] | None = None


class ConfigurationParams(Struct, rename="camel"):
    accepted_output_modes: list[str] | None = None
    history_length: Annotated[int | float | None, _NUMBER] = None
    blocking: bool | None = None
    push_notification_config: webhook_fields.OldConfigParams | None = None


class SendParams(Struct, rename="camel"):
    message: MessageParams
    configuration: ConfigurationParams | None = None
    metadata: Json | None = None


class TaskParams(Struct, rename="camel"):
    id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None


class GetParams(TaskParams, rename="camel"):
    history_length: Annotated[int | float | None, _NUMBER] = None


OF_TASK = Annotated[TaskParams, NAMES_TASK]
GET = Annotated[GetParams, NAMES_TASK]


class ListParams(Struct, rename="camel"):
    limit: Annotated[int | float | None, rule(multipleOf=1, minimum=1, maximum=MAX_PAGE)] = None
    status: Annotated[str | None, rule(enum=[None, *STATES_BACK])] = None
    context_id: str | None = None
    cursor: str | None = None
    include_artifacts: bool | None = None
    history_length: Annotated[int | float | None, _NUMBER] = None


class NoParams(Struct):
    pass


Sending = TypeVar("Sending", bound=SendMessage)


def decode_send(request: type[Sending], params: Any) -> Sending:
    """Decode the params of message/send or message/stream. Raises InvalidParams."""
    wire = check(_message_id_inside(params), SendParams)
    configuration = wire.get("configuration") or {}
    return request(
        message=decode_message(wire["message"]),
        # Without `blocking` the call waits, although the default of a protobuf boolean is false
        # (docs/protocol.md#sending).
        return_immediately=configuration.get("blocking") is False,
        history_length=read_whole(configuration.get("historyLength"), "configuration.historyLength"),
        accepted_output_modes=tuple(configuration.get("acceptedOutputModes") or ()),
        push_config=webhooks.decode_old_inline(configuration.get("pushNotificationConfig")),
        metadata=wire.get("metadata"),
    )


def _message_id_inside(params: Any) -> Any:
    """Return the params with the message's id inside it. Samples of the A2A project put it beside the message
    (docs/protocol.md#leniency)."""
    if isinstance(params, dict) and "messageId" in params and isinstance(params.get("message"), dict):
        return params | {"message": {"messageId": params["messageId"]} | params["message"]}
    return params


def _task_params(params: Any, struct: type[TaskParams] = TaskParams) -> tuple[str, Json]:
    """Return the id of the task, which some clients call taskId, and all params. Raises InvalidParams."""
    wire = check(params, struct)
    task_id = wire.get("id") or wire.get("taskId")
    if not task_id:
        raise InvalidParams(("id", "is required"))
    return task_id, wire


def decode_get(params: Any) -> GetTask:
    """Decode the params of tasks/get. Raises InvalidParams."""
    task_id, wire = _task_params(params, GetParams)
    return GetTask(id=task_id, history_length=read_whole(wire.get("historyLength"), "historyLength"))


def decode_cancel(params: Any) -> CancelTask:
    """Decode the params of tasks/cancel. Raises InvalidParams."""
    task_id, wire = _task_params(params)
    return CancelTask(id=task_id, metadata=wire.get("metadata"))


def decode_resubscribe(params: Any) -> SubscribeToTask:
    """Decode the params of tasks/resubscribe. Raises InvalidParams."""
    task_id, _ = _task_params(params)
    return SubscribeToTask(id=task_id, closes=True)


def decode_list(params: Any) -> ListTasks:
    """Decode the params of tasks/list, which is an addition of this server (docs/protocol.md#listing).

    Raises InvalidParams.
    """
    wire = check(or_empty(params), ListParams)
    limit = read_whole(wire.get("limit"), "limit", 1, MAX_PAGE)
    return ListTasks(
        context_id=wire.get("contextId") or None,
        state=decode_state(wire.get("status"), "status"),
        page_size=50 if limit is None else limit,
        page_token=wire.get("cursor") or None,
        history_length=read_whole(wire.get("historyLength"), "historyLength"),
        include_artifacts=wire.get("includeArtifacts") or False,
    )


def decode_extended_card(params: Any) -> GetExtendedCard:
    """Decode the params of agent/getAuthenticatedExtendedCard, which has none. Raises InvalidParams."""
    check(or_empty(params), NoParams)
    return GetExtendedCard()
