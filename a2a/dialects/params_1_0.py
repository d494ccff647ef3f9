"""The params of A2A 1.0: their types, and the decoders that make requests of them. The params of webhooks are in
webhooks.py."""

from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from a2a.dialects import webhook_fields, webhooks
from a2a.dialects.json.json_1_0 import STATES_BACK, decode_message, decode_state
from a2a.dialects.json.members import MAX_PARTS
from a2a.errors import InvalidParams
from a2a.params import TIME, Base64, Text, Whole, camel_names, check, or_empty, read_time, read_whole, rule, whole
from a2a.requests import CancelTask, GetExtendedCard, GetTask, ListTasks, SendMessage, SubscribeToTask
from a2a.types import Json

MAX_PAGE = 100
"""The most tasks on one page of a list (A2A 1.0, 3.1.4)."""


class PartParams(Struct, rename="camel"):
    text: str | None = None
    raw: Base64 | None = None
    url: str | None = None
    data: Any | UnsetType = UNSET
    filename: str | None = None
    media_type: str | None = None
    metadata: Json | None = None


_CONTENTS = ({"properties": {name: {"type": "string"}}, "required": [name]} for name in ("text", "raw", "url"))
_ONE_CONTENT = rule(oneOf=[*_CONTENTS, {"required": ["data"]}])


class MessageParams(Struct, rename="camel"):
    message_id: Text
    role: Annotated[str | int, rule(enum=["ROLE_USER", 1])]
    parts: Annotated[list[Annotated[PartParams, _ONE_CONTENT]], rule(minItems=1, maxItems=MAX_PARTS)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: list[str] | None = None
    reference_task_ids: list[str] | None = None


class ConfigurationParams(Struct, rename="camel"):
    accepted_output_modes: list[str] | None = None
    history_length: Annotated[Whole | None, whole()] = None
    return_immediately: bool | None = None
    task_push_notification_config: webhook_fields.InlineParams | None = None


class SendParams(Struct, rename="camel"):
    message: MessageParams
    configuration: ConfigurationParams | None = None
    metadata: Json | None = None
    tenant: str | None = None


class TaskParams(Struct, rename="camel"):
    id: Text
    tenant: str | None = None


class GetParams(TaskParams, rename="camel"):
    history_length: Annotated[Whole | None, whole()] = None


class CancelParams(TaskParams, rename="camel"):
    metadata: Json | None = None


class ListParams(Struct, rename="camel"):
    tenant: str | None = None
    context_id: str | None = None
    status: Annotated[str | int | None, rule(enum=[None, *STATES_BACK])] = None
    page_size: Annotated[Whole | None, whole(1, MAX_PAGE)] = None
    page_token: str | None = None
    history_length: Annotated[Whole | None, whole()] = None
    status_timestamp_after: Annotated[str | None, rule(format="date-time", pattern=TIME)] = None
    include_artifacts: bool | None = None


class TenantParams(Struct, rename="camel"):
    tenant: str | None = None


class PagingParams(TenantParams, rename="camel"):
    page_size: Annotated[Whole | None, whole(0, webhook_fields.MAX_PAGE)] = None
    page_token: str | None = None


Sending = TypeVar("Sending", bound=SendMessage)


def decode_send(request: type[Sending], params: Any) -> Sending:
    """Decode the params of SendMessage or SendStreamingMessage. Raises InvalidParams."""
    wire = check(_camel_send(params), SendParams)
    configuration = wire.get("configuration") or {}
    return request(
        tenant=wire.get("tenant") or None,
        message=decode_message(wire["message"]),
        return_immediately=configuration.get("returnImmediately") or False,
        history_length=read_whole(configuration.get("historyLength"), "configuration.historyLength"),
        accepted_output_modes=tuple(configuration.get("acceptedOutputModes") or ()),
        push_config=webhooks.decode_inline(configuration.get("taskPushNotificationConfig")),
        metadata=wire.get("metadata"),
    )


def _camel_send(params: Any) -> Any:
    """Return the params with camelCase names, down to the parts. Names in data and metadata stay as they are."""
    if not isinstance(params, dict):
        return params
    for name in ("message", "configuration"):
        if isinstance(inner := params.get(name), dict):
            params[name] = inner = camel_names(inner)
            if "taskPushNotificationConfig" in inner:
                inner["taskPushNotificationConfig"] = webhooks.flat(inner["taskPushNotificationConfig"])
            if isinstance(parts := inner.get("parts"), list):
                inner["parts"] = [camel_names(part) if isinstance(part, dict) else part for part in parts]
    return params


def _task_params(params: Any, struct: type[TaskParams]) -> Json:
    """Return the params of a method with a task's id. Raises InvalidParams."""
    wire = check(camel_names(params) if isinstance(params, dict) else params, struct)
    if not wire["id"]:
        raise InvalidParams(("id", "must not be empty"))
    return wire


def decode_get(params: Any) -> GetTask:
    """Decode the params of GetTask. Raises InvalidParams."""
    wire = _task_params(params, GetParams)
    length = read_whole(wire.get("historyLength"), "historyLength")
    return GetTask(id=wire["id"], tenant=wire.get("tenant") or None, history_length=length)


def decode_cancel(params: Any) -> CancelTask:
    """Decode the params of CancelTask. Raises InvalidParams."""
    wire = _task_params(params, CancelParams)
    return CancelTask(id=wire["id"], tenant=wire.get("tenant") or None, metadata=wire.get("metadata"))


def decode_subscribe(params: Any) -> SubscribeToTask:
    """Decode the params of SubscribeToTask. Raises InvalidParams."""
    wire = _task_params(params, TaskParams)
    return SubscribeToTask(id=wire["id"], tenant=wire.get("tenant") or None)


def decode_list(params: Any) -> ListTasks:
    """Decode the params of ListTasks. Raises InvalidParams."""
    params = or_empty(params)
    wire = check(camel_names(params) if isinstance(params, dict) else params, ListParams)
    size = read_whole(wire.get("pageSize"), "pageSize", 1, MAX_PAGE)
    return ListTasks(
        tenant=wire.get("tenant") or None,
        context_id=wire.get("contextId") or None,
        state=decode_state(wire.get("status"), "status"),
        page_size=50 if size is None else size,
        page_token=wire.get("pageToken") or None,
        history_length=read_whole(wire.get("historyLength"), "historyLength"),
        since=read_time(wire.get("statusTimestampAfter"), "statusTimestampAfter"),
        include_artifacts=wire.get("includeArtifacts") or False,
    )


def decode_extended_card(params: Any) -> GetExtendedCard:
    """Decode the params of GetExtendedAgentCard. Raises InvalidParams."""
    return GetExtendedCard(tenant=check(or_empty(params), TenantParams).get("tenant") or None)
