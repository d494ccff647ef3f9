"""A2A 0.3 and 0.2 over REST, in two forms of JSON: that of the specification's text, with `kind`, and that of its
protobuf (docs/protocol.md#rest-of-0x).

Each form is the dialect of 0.3 over JSON-RPC, with functions that change params and answers. 0.2 differs only in its
card.
"""

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import orjson
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import Frame
from a2a.choice import CallError, minor, version_error
from a2a.dialects import params_0_x, v0_2, v0_3
from a2a.dialects.errors_1_0 import REST_STATUSES, encode_rest_error, reason_of
from a2a.dialects.json.protobuf_0_x import (
    kind_send,
    kind_state,
    proto,
    proto_error,
    proto_field,
    proto_words,
    with_schemes,
)
from a2a.dialects.json.security import member_form
from a2a.dialects.schemas import answers_0_x, answers_1_0
from a2a.dialects.schemas import protobuf_0_x as types
from a2a.documents import EventDocument, TaskDocument
from a2a.envelopes import Member
from a2a.errors import Error, InvalidParams
from a2a.language import Dialect, Method, Rest, Route
from a2a.requests import SendMessage
from a2a.types import Json, Message


class ConfigParams(Struct, rename="camel"):
    config_id: str | None = None


_CONFIGS = "/tasks/{id}/pushNotificationConfigs"
_CONFIG = _CONFIGS + "/{pushNotificationConfigId}"
_MISSPELT = "/task/{id}/pushNotificationConfigs"
"""A path of an annotation in the protobuf, which spells `tasks` wrongly (docs/protocol.md#rest-of-0x)."""
ROUTES = (
    Route(verb="POST", path="/message:send", method="message/send"),
    Route(verb="POST", path="/message:stream", method="message/stream"),
    Route(verb="GET", path="/tasks", method="tasks/list", query=params_0_x.ListParams),
    Route(verb="POST", path="/tasks/{id}:cancel", method="tasks/cancel"),
    # The specification says POST in its text and GET in the protobuf (docs/protocol.md#methods-and-paths).
    Route(verb="POST", path="/tasks/{id}:subscribe", method="tasks/resubscribe"),
    Route(verb="GET", path="/tasks/{id}:subscribe", method="tasks/resubscribe"),
    Route(verb="GET", path="/tasks/{id}", method="tasks/get", query=params_0_x.GetParams),
    Route(verb="POST", path=_CONFIGS, method="tasks/pushNotificationConfig/set", query=ConfigParams),
    Route(verb="POST", path=_MISSPELT, method="tasks/pushNotificationConfig/set", query=ConfigParams),
    Route(verb="GET", path=_CONFIGS, method="tasks/pushNotificationConfig/list"),
    Route(verb="GET", path=_CONFIG, method="tasks/pushNotificationConfig/get"),
    Route(verb="DELETE", path=_CONFIG, method="tasks/pushNotificationConfig/delete"),
    Route(verb="GET", path="/card", method="agent/getAuthenticatedExtendedCard"),
)


_WRAPPERS = {"pushNotificationConfig", "push_notification_config", "name"}
"""Members around a webhook in the protobuf. One of the official clients writes snake_case."""


def form_of(body: Any) -> Dialect:
    """Return the dialect of a body's form. The default is the protobuf's form, which the official clients speak."""
    if not isinstance(body, dict):
        return PROTO
    message = body.get("message")
    if isinstance(message, dict):
        is_proto = "content" in message or str(message.get("role", "")).startswith("ROLE_")
        return PROTO if is_proto else KIND
    config = body.get("config")
    return KIND if isinstance(config, dict) and not _WRAPPERS & config.keys() else PROTO


# ------------------------------------------------------------------ requests


def _without_name(params: Json, path: str, member: str) -> Json:
    """Return the params without a member that repeats a name of the path. Raises InvalidParams for another name."""
    params = {**params}
    name = params.pop(member, None)
    if name not in (None, "", path):
        raise InvalidParams((member, "is not that of the path"))
    return params


def _task(params: Json) -> Json:
    """Return the params with the task of the path. Raises InvalidParams if they name another task."""
    return _without_name(_without_name(params, f"tasks/{params['id']}", "name"), params["id"], "taskId")


def _config(params: Json) -> Json:
    """Return the params of JSON-RPC for a webhook.

    Clients send the webhook as the whole body, inside `config`, or inside `config` with its resource name. Raises
    InvalidParams if a name is not that of the path.
    """
    task = f"tasks/{params['id']}"
    params = _without_name(_without_name(params, task, "parent"), params["id"], "taskId")
    config_id = params.get("configId") or params.get("config_id")
    outer = params["config"] if isinstance(params.get("config"), dict) else params
    name = str(outer.get("name", ""))
    if name.startswith("tasks/") and not f"{name}/".startswith(f"{task}/"):
        raise InvalidParams(("name", "is not that of the path"))
    of_task = f"{task}/pushNotificationConfigs/"
    named = name.removeprefix(of_task) if name.startswith(of_task) else ""
    named = "" if named == "None" else named  # The Python client 0.3.26 writes it for a missing id.
    inner = outer.get("pushNotificationConfig") or outer.get("push_notification_config") or params.get("config") or {}
    for member, id in (("configId", config_id), ("name", named)):
        if id and isinstance(inner, dict):
            if inner.get("id") not in (None, "", id):
                raise InvalidParams((member, "is not the id of the config"))
            inner = inner | {"id": id}
    return {"taskId": params["id"], "pushNotificationConfig": with_schemes(inner)}


def _list(params: Json) -> Json:
    """Return the params with the name of the state in the form with `kind`. Both forms are accepted."""
    if isinstance(status := params.get("status"), str):
        return params | {"status": kind_state(status)}
    return params


# ------------------------------------------------------------------- answers


def _inside(answer: Json) -> Json:
    """Return a task or a message inside a member with the name of its kind."""
    return {str(answer.get("kind", "task")): answer}


def _proto_inside(answer: Json) -> Json:
    return {str(answer.get("kind", "task")): proto(answer)}


def _proto_page(page: Json) -> Json:
    return page | {"tasks": [proto(task) for task in page["tasks"]]}


def _proto_config(config: Json) -> Json:
    inner = config["pushNotificationConfig"]
    name = f"tasks/{config['taskId']}/pushNotificationConfigs/{inner.get('id', '')}"
    return {"name": name, "pushNotificationConfig": inner}


def _proto_configs(configs: list[Json]) -> Json:
    return {"configs": [_proto_config(config) for config in configs]}


def _card(card: Json) -> Json:
    """Return the card with its security schemes in both forms, since some clients read it as protobuf.

    It loses its signatures, which cover the card without this addition (docs/protocol.md#card-of-both).
    """
    schemes = {
        name: scheme | member_form({member: value for member, value in scheme.items() if member != "description"})
        for name, scheme in card.get("securitySchemes", {}).items()
    }
    both = card | ({"securitySchemes": schemes} if schemes else {})
    return {name: value for name, value in both.items() if name != "signatures"}


def _nothing(_: Any) -> Json:
    """Return an empty object, where JSON-RPC has null (docs/protocol.md#webhook-methods)."""
    return {}


def _same(wire: Any) -> Any:
    return wire


Change = Callable[[Any], Any]
Changes = dict[str, tuple[Change, Change]]
"""The changes of params and of answers, by method."""
Types = dict[str, tuple[Any, Any]]
"""The types of params and of results, by method."""


def wrap(method: Method, before: Change, after: Change) -> Method:
    """Return the method with a change of its params before they are decoded, and of its encoded answer."""

    def decode(params: Any) -> Any:
        return method.decode(before(params))

    def encode(result: Any) -> bytes:
        return orjson.dumps(after(orjson.loads(bytes(method.encode(result)))))

    return replace(method, decode=decode, encode=method.encode if after is _same else encode)


KIND_CHANGES: Changes = {
    "message/send": (_same, _inside),
    "message/stream": (_same, _inside),
    "tasks/cancel": (_task, _same),
    "tasks/list": (_list, _same),
    "tasks/pushNotificationConfig/set": (_config, _same),
    "tasks/pushNotificationConfig/delete": (_same, _nothing),
}
PROTO_CHANGES: Changes = KIND_CHANGES | {
    "message/send": (kind_send, _proto_inside),
    "message/stream": (kind_send, _proto_inside),
    "tasks/get": (_same, proto),
    "tasks/list": (_list, _proto_page),
    "tasks/cancel": (_task, proto),
    "tasks/resubscribe": (_same, proto),
    "tasks/pushNotificationConfig/set": (_config, _proto_config),
    "tasks/pushNotificationConfig/get": (_same, _proto_config),
    "tasks/pushNotificationConfig/list": (_same, _proto_configs),
    "agent/getAuthenticatedExtendedCard": (_same, _card),
}


KIND_TYPES: Types = {
    "message/send": (params_0_x.SendParams, types.KIND_SEND_RESULT),
    "message/stream": (params_0_x.SendParams, types.KIND_EVENT),
    "tasks/get": (types.GetParams, answers_0_x.Task),
    "tasks/cancel": (types.TaskParams, answers_0_x.Task),
    "tasks/resubscribe": (types.TaskParams, types.KIND_EVENT),
    "tasks/pushNotificationConfig/set": (types.KindSetParams, answers_0_x.TaskPushNotificationConfig),
    "tasks/pushNotificationConfig/delete": (types.ConfigIdParams, answers_1_0.Empty),
}
PROTO_TYPES: Types = {
    "message/send": (types.SEND, types.SEND_RESULT),
    "message/stream": (types.SEND, types.EVENT),
    "tasks/get": (types.GetParams, types.Task),
    "tasks/list": (params_0_x.ListParams, types.TaskPage),
    "tasks/cancel": (types.TaskParams, types.Task),
    "tasks/resubscribe": (types.TaskParams, types.EVENT),
    "tasks/pushNotificationConfig/set": (types.SET, types.TaskPushNotificationConfig),
    "tasks/pushNotificationConfig/get": (types.ConfigIdParams, types.TaskPushNotificationConfig),
    "tasks/pushNotificationConfig/list": (types.TaskParams, types.PushNotificationConfigPage),
    "tasks/pushNotificationConfig/delete": (types.ConfigIdParams, answers_1_0.Empty),
    "agent/getAuthenticatedExtendedCard": (params_0_x.NoParams, types.AgentCard),
}


def _in_proto_words(method: Method) -> Method:
    """Return the method with errors that have the field names of the protobuf."""

    def decode(params: Any) -> Any:
        try:
            request = method.decode(params)
        except InvalidParams as error:
            raise proto_words(error) from None
        if isinstance(request, SendMessage) and (config := request.push_config):
            return replace(request, push_config=replace(config, path=proto_field(config.path)))
        return request

    return replace(method, decode=decode)


def _frame_name(frame: Frame) -> str:
    """Return the name of the member around an event of a stream."""
    match frame:
        case TaskDocument() | EventDocument(kind="task"):
            return "task"
        case EventDocument(kind="artifactUpdate"):
            return "artifactUpdate"
        case EventDocument():
            return "statusUpdate"
        case Message():
            return "message"
        case _:
            assert_never(frame)


def _kind_frame(frame: Frame, history_length: int | None) -> bytes | None:
    wire = v0_3.encode_frame(frame, history_length)
    return None if wire is None else b'{"%s":%s}' % (_frame_name(frame).encode(), wire)


def _proto_frame(frame: Frame, history_length: int | None) -> bytes | None:
    wire = v0_3.encode_frame(frame, history_length)
    return None if wire is None else orjson.dumps({_frame_name(frame): proto(orjson.loads(wire))})


_KINDS = {
    "PARSE_ERROR": "JSONParseError",
    "INTERNAL_ERROR": "InternalError",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": "AuthenticatedExtendedCardNotConfiguredError",
}
"""The names of errors in 0.3 (its JSON Schema) that do not follow from their reasons."""


def _encode_error(error: Error, status: int, name: str) -> Json:
    """Return the body of 1.0, with the members that the official clients of 0.3 read: code, message and type."""
    body = encode_rest_error(error, status, name)
    reason = reason_of(error)
    kind = _KINDS.get(reason) or reason.title().replace("_", "") + "Error"
    return body | {"code": v0_3.DIALECT.code(error), "message": body["error"]["message"], "type": kind}


_REST = Rest(
    routes=ROUTES,
    media="application/json",
    statuses=REST_STATUSES,
    encode_error=_encode_error,
    error_type=types.RestError,
)


def _typed(method: Method, params: Any, result: Any) -> Method:
    return replace(method, params=params, result=result)


def _dialect(name: str, changes: Changes, kinds: Types, frame: Any, words: Callable[[Method], Method]) -> Dialect:
    """Return the dialect of 0.3 with changes of its methods, its frames, and the words of its errors."""
    methods = {
        name: words(
            _typed(wrap(method, *changes.get(name, (_same, _same))), *kinds.get(name, (method.params, method.result)))
        )
        for name, method in v0_3.DIALECT.methods.items()
    }
    return replace(
        v0_3.DIALECT, name=name, methods=methods, encode_frame=frame, rest=_REST, pushes_as=v0_3.DIALECT.name
    )


KIND = _dialect("a2a-0.3-kind", KIND_CHANGES, KIND_TYPES, _kind_frame, _same)
PROTO = replace(
    _dialect("a2a-0.3-proto", PROTO_CHANGES, PROTO_TYPES, _proto_frame, _in_proto_words),
    words=lambda error: proto_error(v0_3.words(error)),
)
_CARD = "agent/getAuthenticatedExtendedCard"
_OLD_CARD = replace(v0_3.DIALECT.methods[_CARD], encode=v0_2.encode_extended_card, result=types.AgentCard)
OLDEST = replace(PROTO, version=v0_2.DIALECT.version, methods=PROTO.methods | {_CARD: wrap(_OLD_CARD, _same, _card)})
"""The dialect of 0.2, which has another card."""
DIALECTS = (PROTO, KIND, OLDEST)


def choose(
    dialects: Sequence[Dialect], languages: Any, member: Member, version: str | None, pin: str | None
) -> Dialect:
    """Return the dialect of the body's form, and for 0.2 the one with its card.

    Raises CallError for a version that none of the dialects has.
    """
    dialect = form_of(member.params)
    number = minor(version or "")
    if dialect is PROTO and number == OLDEST.version:
        dialect = OLDEST
    if version and all(other.version != number for other in dialects):
        raise CallError(version_error(version, dialects), dialect)
    return dialect
