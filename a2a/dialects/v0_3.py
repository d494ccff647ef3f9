"""A2A 0.3.0 over JSON-RPC: methods, params, errors and card. Its data model is in json/json_0_x.py.

The decoders are lenient, since samples of the A2A project leave out `kind`; the encoders are strict.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar, assert_never

import orjson
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import Answer, CardAnswer, Frame, TaskPage
from a2a.dialects import errors_1_0, webhook_fields, webhooks
from a2a.dialects.errors_1_0 import reason_of
from a2a.dialects.json.json_0_x import (
    STATES_BACK,
    decode_message,
    decode_state,
    encode_event,
    encode_message,
    encode_task,
)
from a2a.dialects.json.json_1_0 import decode_task, event_of
from a2a.dialects.json.members import MAX_PARTS, about_members, extension_members, skill_members
from a2a.dialects.json.security import typed_form
from a2a.dialects.params_1_0 import MAX_PAGE
from a2a.dialects.schemas import answers_0_x as types
from a2a.documents import EventDocument, EventKind, TaskDocument
from a2a.errors import (
    Error,
    ExtendedCardNotConfigured,
    ExtensionSupportRequired,
    InvalidParams,
    InvalidRequest,
    UnsupportedOperation,
)
from a2a.extensions import OLD_HEADER
from a2a.language import Dialect, Method, Push
from a2a.params import INT32, NAMES_TASK, Base64, Text, check, or_empty, read_whole, rule
from a2a.requests import (
    CancelTask,
    GetExtendedCard,
    GetTask,
    ListTasks,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.types import Card, Interface, Json, Message, SecurityScheme, Skill

COLUMN = errors_1_0.COLUMN | {ExtensionSupportRequired: errors_1_0.COLUMN[InvalidRequest]}
"""The cells of 1.0. 0.x has none for a required extension, so that is an invalid request (docs/protocol.md#sending)."""


# ---------------------------------------------------------------- requests


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
    history_length: int | float | None = None
    metadata: Json | None = None


OF_TASK = Annotated[TaskParams, NAMES_TASK]
GET = Annotated[TaskParams, NAMES_TASK, rule(properties={"historyLength": _NUMBER.extra_json_schema})]
"""The params of tasks/get. The other methods of a task do not read the length."""


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


def _task_params(params: Any) -> tuple[str, Json]:
    """Return the id of the task, which some clients call taskId, and all params. Raises InvalidParams."""
    wire = check(params, TaskParams)
    task_id = wire.get("id") or wire.get("taskId")
    if not task_id:
        raise InvalidParams(("id", "is required"))
    return task_id, wire


def decode_get(params: Any) -> GetTask:
    """Decode the params of tasks/get. Raises InvalidParams."""
    task_id, wire = _task_params(params)
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


# ----------------------------------------------------------------- answers


def _from_document(document: TaskDocument, history_length: int | None) -> Json:
    """Return a task in the JSON of 0.x."""
    return encode_task(decode_task(orjson.loads(bytes(document.json(history_length)))))


def encode_answer(answer: Answer) -> bytes:
    """Return a task or a message, whose `kind` says which."""
    if answer.task is not None:
        return orjson.dumps(_from_document(answer.task, answer.history_length))
    if answer.message is not None:
        return orjson.dumps(encode_message(answer.message))
    raise ValueError("an answer has a task or a message")


def encode_page(page: TaskPage) -> bytes:
    """Return a page. If the caller requested artifacts, an empty list of them is shown too, as in 1.0."""
    empty: Json = {"artifacts": []} if page.include_artifacts else {}
    tasks = [empty | _from_document(task, page.history_length) for task in page.tasks]
    return orjson.dumps({"tasks": tasks, "nextCursor": page.next_page_token, "totalSize": page.total_size})


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return one event of a stream; None for a caller's message that sets no status."""
    wire = frame_members(frame, history_length)
    return None if wire is None else orjson.dumps(wire)


def frame_members(frame: Frame, history_length: int | None) -> Json | None:
    """Return the members of one event of a stream, whose `kind` says which; None for a message that sets no status."""
    match frame:
        case TaskDocument():
            return _from_document(frame, history_length)
        case EventDocument(task_id=task_id, context_id=context_id):
            return encode_event(event_of(frame), task_id=task_id, context_id=context_id)
        case Message():
            return encode_message(frame)
        case _:
            assert_never(frame)


def encode_push(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes | None:
    """Return the body of a delivery: the whole task, for each change of its status (docs/protocol.md#deliveries)."""
    return encode_frame(task(), None) if pushes(event.kind, event.state) else None


def pushes(kind: EventKind, state: str | None) -> bool:
    """Return whether the event sets a status (docs/protocol.md#deliveries)."""
    return state is not None


def words(error: Error) -> Error:
    """Return an operation's error, which is in the words of 1.0, in the words of 0.x.

    If the extended card is switched off, 1.0 has UnsupportedOperation (A2A 1.0.1, 3.3.4), and 0.3 has
    ExtendedCardNotConfigured (A2A 0.3.0, 8.2).
    """
    if isinstance(error, UnsupportedOperation) and error.facts.get("capability") == "extendedAgentCard":
        return ExtendedCardNotConfigured(**error.facts)
    if not isinstance(error, InvalidParams):
        return error
    names = {"pageToken": "cursor"}
    return InvalidParams(*((names.get(field, field), text) for field, text in error.violations), **error.facts)


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` has the reason and the facts, and is absent if there is only the reason."""
    violations = error.violations if isinstance(error, InvalidParams) else ()
    data: Json = {"reason": reason_of(error), **error.facts}
    if violations:
        data["violations"] = [{"field": field, "description": text} for field, text in violations]
    return {"code": code, "message": error.full_message} | ({"data": data} if len(data) > 1 else {})


def encode_scheme(scheme: SecurityScheme) -> Json:
    """Return a SecurityScheme, whose `type` says its kind."""
    if scheme.flow:  # 0.3 has no `pkceRequired`.
        scheme = replace(scheme, flow=replace(scheme.flow, pkce_required=False))
    return typed_form(scheme)


def interfaces(card: Card) -> tuple[Interface, ...]:
    """Return the interfaces of 0.x, JSON-RPC first. A card without any has all its interfaces listed."""
    older = tuple(i for i in card.interfaces if i.version.startswith("0.")) or card.interfaces
    return tuple(sorted(older, key=lambda i: i.binding != "JSONRPC"))


def encode_requirements(card: Card, scopes: tuple[str, ...]) -> list[Json]:
    """Return one requirement for each scheme, with the scopes. A caller has to meet one of them."""
    return [{name: scopes} for name in card.security_schemes]


def encode_skill(skill: Skill, card: Card) -> Json:
    """Return an AgentSkill."""
    return skill_members(skill) | ({"security": encode_requirements(card, skill.scopes)} if skill.scopes else {})


def encode_card(card: Card) -> Json:
    """Return the pure card of 0.3 (docs/protocol.md#cards)."""
    own = interfaces(card)
    out: Json = {
        "protocolVersion": "0.3.0",
        "name": card.name,
        "description": card.description,
        "url": own[0].url,
        "preferredTransport": own[0].binding,
        "additionalInterfaces": [{"url": i.url, "transport": i.binding} for i in own],
        "version": card.version,
        "capabilities": {
            "streaming": card.streaming,
            "pushNotifications": card.push_notifications,
            "stateTransitionHistory": False,
        },
        "defaultInputModes": card.input_modes,
        "defaultOutputModes": card.output_modes,
        "skills": [encode_skill(skill, card) for skill in card.skills],
        "supportsAuthenticatedExtendedCard": card.extended_card,
    } | about_members(card)
    if card.extensions:
        out["capabilities"]["extensions"] = [extension_members(extension) for extension in card.extensions]
    if card.security_schemes:
        out["securitySchemes"] = {name: encode_scheme(scheme) for name, scheme in card.security_schemes.items()}
        out["security"] = encode_requirements(card, card.scopes)
    return out


def encode_extended_card(answer: CardAnswer) -> bytes:
    """Return the extended card, which is signed if the server signs cards."""
    return orjson.dumps(answer.sign(encode_card(answer.card)))


METHODS = {
    "message/send": Method(
        request=SendMessage,
        decode=partial(decode_send, SendMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.SEND_RESULT,
    ),
    "message/stream": Method(
        request=StreamMessage,
        decode=partial(decode_send, StreamMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.EVENT,
    ),
    "tasks/get": Method(request=GetTask, decode=decode_get, encode=encode_answer, params=GET, result=types.Task),
    "tasks/list": Method(
        request=ListTasks, decode=decode_list, encode=encode_page, params=ListParams, result=types.TaskPage
    ),
    "tasks/cancel": Method(
        request=CancelTask, decode=decode_cancel, encode=encode_answer, params=OF_TASK, result=types.Task
    ),
    "tasks/resubscribe": Method(
        request=SubscribeToTask,
        decode=decode_resubscribe,
        encode=encode_answer,
        params=OF_TASK,
        result=types.EVENT,
    ),
    **webhooks.OLD_METHODS,
    "agent/getAuthenticatedExtendedCard": Method(
        request=GetExtendedCard,
        decode=decode_extended_card,
        encode=encode_extended_card,
        params=NoParams,
        result=types.AgentCard,
    ),
}
DIALECT = Dialect(
    name="a2a-0.3",
    version="0.3",
    methods=METHODS,
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.Error,
    errors_as_stream=True,
    words=words,
    encode_frame=encode_frame,
    encode_card=encode_card,
    extensions_header=OLD_HEADER,
    push=Push(encode=encode_push, has=pushes, media="application/json", whole_task=True, default_id=True),
)
