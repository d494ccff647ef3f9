"""A2A 1.0 over JSON-RPC and REST: methods, params, routes and card. Its errors are in errors_1_0.py, and its data model
is in json/json_1_0.py."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar, assert_never

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a.answers import Answer, CardAnswer, Frame, TaskPage
from a2a.dialects import webhook_fields, webhooks
from a2a.dialects.errors_1_0 import COLUMN, REST_STATUSES, encode_error, encode_rest_error
from a2a.dialects.json.json_1_0 import (
    STATES_BACK,
    decode_message,
    decode_state,
    dumps,
    encode_message,
    status_frame,
)
from a2a.dialects.json.members import MAX_PARTS, about_members, extension_members, skill_members
from a2a.dialects.json.security import member_form, typed_form
from a2a.dialects.schemas import answers_1_0 as types
from a2a.documents import Encoded, EventDocument, EventKind, TaskDocument, enclose, join_pieces
from a2a.errors import InvalidParams
from a2a.extensions import HEADER
from a2a.language import Dialect, Method, Push, Rest, Route
from a2a.params import (
    TIME,
    Base64,
    Text,
    Whole,
    camel_names,
    check,
    or_empty,
    read_time,
    read_whole,
    rule,
    whole,
)
from a2a.requests import (
    CancelTask,
    GetExtendedCard,
    GetTask,
    ListTasks,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.types import Card, Json, Message, SecurityScheme, Skill

MAX_PAGE = 100
"""The most tasks on one page of a list (A2A 1.0, 3.1.4)."""

# ---------------------------------------------------------------- requests


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
    history_length: Whole | None = None
    metadata: Json | None = None
    tenant: str | None = None


OF_TASK = Annotated[TaskParams, rule(properties={"historyLength": whole().extra_json_schema})]
"""The params of GetTask. The other methods of a task do not read the length."""


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


def _task_params(params: Any) -> Json:
    """Return the params of a method with a task's id. Raises InvalidParams."""
    wire = check(camel_names(params) if isinstance(params, dict) else params, TaskParams)
    if not wire["id"]:
        raise InvalidParams(("id", "must not be empty"))
    return wire


def decode_get(params: Any) -> GetTask:
    """Decode the params of GetTask. Raises InvalidParams."""
    wire = _task_params(params)
    length = read_whole(wire.get("historyLength"), "historyLength")
    return GetTask(id=wire["id"], tenant=wire.get("tenant") or None, history_length=length)


def decode_cancel(params: Any) -> CancelTask:
    """Decode the params of CancelTask. Raises InvalidParams."""
    wire = _task_params(params)
    return CancelTask(id=wire["id"], tenant=wire.get("tenant") or None, metadata=wire.get("metadata"))


def decode_subscribe(params: Any) -> SubscribeToTask:
    """Decode the params of SubscribeToTask. Raises InvalidParams."""
    wire = _task_params(params)
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


# ----------------------------------------------------------------- answers


def encode_answer(answer: Answer) -> Encoded:
    """Return the result of a send: {"task": ...} or {"message": ...}."""
    if answer.task is not None:
        return enclose(b'{"task":', answer.task.json(answer.history_length), b"}")
    if answer.message is not None:
        return b'{"message":' + orjson.dumps(encode_message(answer.message)) + b"}"
    raise ValueError("an answer has a task or a message")


def encode_bare_task(answer: Answer) -> Encoded:
    """Return a task without a member around it."""
    if answer.task is None:
        raise ValueError("the answer has no task")
    return answer.task.json(answer.history_length)


def encode_page(page: TaskPage) -> Encoded:
    """Return a page with all four members. pageSize is the number of tasks on it (docs/protocol.md#listing)."""
    show_empty = page.include_artifacts
    tasks = [text for task in page.tasks for text in (b",", task.json(page.history_length, show_empty=show_empty))]
    sizes = f'"pageSize":{len(page.tasks)},"totalSize":{page.total_size}'
    end = f'],"nextPageToken":{dumps(page.next_page_token)},{sizes}}}'
    return join_pieces([b'{"tasks":[', *tasks[1:], end.encode()])


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return a StreamResponse (A2A 1.0, 3.2.3); None for a caller's message that sets no status."""
    match frame:
        case TaskDocument():
            return bytes(enclose(b'{"task":', frame.json(history_length), b"}"))
        case EventDocument(kind="message"):
            return status_frame(frame)
        case EventDocument():
            return frame.json()
        case Message():
            return b'{"message":' + orjson.dumps(encode_message(frame)) + b"}"
        case _:
            assert_never(frame)


def encode_push(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes | None:
    """Return the body of a delivery: the StreamResponse of the event, as on a stream (A2A 1.0, 4.3.3)."""
    return encode_frame(event, None)


def pushes(kind: EventKind, state: str | None) -> bool:
    """Return whether a stream shows the event. Of a caller's message, a stream shows only the status that it sets."""
    return kind != "message" or state is not None


def encode_requirements(card: Card, scopes: tuple[str, ...]) -> list[Json]:
    """Return one requirement for each scheme, with the scopes. A caller has to meet one of them (A2A 1.0, 4.4.1)."""
    return [{"schemes": {name: {"list": scopes} if scopes else {}}} for name in card.security_schemes]


def encode_skill(skill: Skill, card: Card) -> Json:
    """Return an AgentSkill."""
    out = skill_members(skill)
    return out | ({"securityRequirements": encode_requirements(card, skill.scopes)} if skill.scopes else {})


def encode_scheme(scheme: SecurityScheme) -> Json:
    """Return a SecurityScheme, whose kind is the name of its member."""
    return member_form(typed_form(scheme))


def encode_card(card: Card) -> Json:
    """Return the pure card of 1.0 (docs/protocol.md#cards)."""
    out: Json = {
        "name": card.name,
        "description": card.description,
        "supportedInterfaces": [
            {"url": i.url, "protocolBinding": i.binding, "protocolVersion": i.version}
            | ({"tenant": i.tenant} if i.tenant else {})
            for i in card.interfaces
        ],
        "version": card.version,
        "capabilities": {
            "streaming": card.streaming,
            "pushNotifications": card.push_notifications,
            "extendedAgentCard": card.extended_card,
        },
        "defaultInputModes": card.input_modes,
        "defaultOutputModes": card.output_modes,
        "skills": [encode_skill(skill, card) for skill in card.skills],
    } | about_members(card)
    if card.extensions:
        out["capabilities"]["extensions"] = [extension_members(extension) for extension in card.extensions]
    if card.security_schemes:
        out["securitySchemes"] = {name: encode_scheme(scheme) for name, scheme in card.security_schemes.items()}
        out["securityRequirements"] = encode_requirements(card, card.scopes)
    return out


def encode_extended_card(answer: CardAnswer) -> bytes:
    """Return the extended card, which is signed if the server signs cards."""
    return orjson.dumps(answer.sign(encode_card(answer.card)))


_CONFIGS = "/tasks/{taskId}/pushNotificationConfigs"
ROUTES = (
    Route(verb="POST", path="/message:send", method="SendMessage", query=TenantParams),
    Route(verb="POST", path="/message:stream", method="SendStreamingMessage", query=TenantParams),
    Route(verb="GET", path="/tasks", method="ListTasks", query=ListParams),
    Route(verb="POST", path="/tasks/{id}:cancel", method="CancelTask", query=TenantParams),
    # The specification says POST in its text and GET in the protobuf (docs/protocol.md#methods-and-paths).
    Route(verb="POST", path="/tasks/{id}:subscribe", method="SubscribeToTask", query=TenantParams),
    Route(verb="GET", path="/tasks/{id}:subscribe", method="SubscribeToTask", query=TenantParams),
    Route(verb="GET", path="/tasks/{id}", method="GetTask", query=TaskParams),
    Route(verb="POST", path=_CONFIGS, method="CreateTaskPushNotificationConfig", query=TenantParams),
    Route(verb="GET", path=_CONFIGS, method="ListTaskPushNotificationConfigs", query=PagingParams),
    Route(verb="GET", path=_CONFIGS + "/{id}", method="GetTaskPushNotificationConfig", query=TenantParams),
    Route(verb="DELETE", path=_CONFIGS + "/{id}", method="DeleteTaskPushNotificationConfig", query=TenantParams),
    Route(verb="GET", path="/extendedAgentCard", method="GetExtendedAgentCard", query=TenantParams),
)


METHODS = {
    "SendMessage": Method(
        request=SendMessage,
        decode=partial(decode_send, SendMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.SEND_RESULT,
    ),
    "SendStreamingMessage": Method(
        request=StreamMessage,
        decode=partial(decode_send, StreamMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.EVENT,
    ),
    "GetTask": Method(request=GetTask, decode=decode_get, encode=encode_bare_task, params=OF_TASK, result=types.Task),
    "ListTasks": Method(
        request=ListTasks, decode=decode_list, encode=encode_page, params=ListParams, result=types.TaskPage
    ),
    "CancelTask": Method(
        request=CancelTask, decode=decode_cancel, encode=encode_bare_task, params=TaskParams, result=types.Task
    ),
    "SubscribeToTask": Method(
        request=SubscribeToTask,
        decode=decode_subscribe,
        encode=encode_bare_task,
        params=TaskParams,
        result=types.EVENT,
    ),
    **webhooks.METHODS,
    "GetExtendedAgentCard": Method(
        request=GetExtendedCard,
        decode=decode_extended_card,
        encode=encode_extended_card,
        params=TenantParams,
        result=types.AgentCard,
    ),
}
DIALECT = Dialect(
    name="a2a-1.0",
    version="1.0",
    methods=METHODS,
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.Error,
    encode_frame=encode_frame,
    encode_card=encode_card,
    extensions_header=HEADER,
    push=Push(encode=encode_push, has=pushes, media="application/a2a+json"),
    rest=Rest(
        routes=ROUTES,
        media="application/a2a+json",
        statuses=REST_STATUSES,
        encode_error=encode_rest_error,
        error_type=types.RestError,
    ),
)
