"""A2A 0.3 over REST, which has two JSONs: that of the text, with `kind`, and that of the protobuf
(docs/protocol.md#rest-of-0x).

Both are 0.3 as it is on JSON-RPC, with what differs put around it. 0.2 is the same on this wire.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import Frame
from a2a.choice import CallError, minor, version_error
from a2a.dialects import v0_2, v0_3
from a2a.dialects.errors_1_0 import REST_STATUSES, encode_rest_error
from a2a.dialects.json.protobuf_0_x import (
    kind_send,
    kind_state,
    proto,
    proto_error,
    proto_field,
    proto_words,
    with_schemes,
)
from a2a.documents import EventDocument, TaskDocument
from a2a.envelopes import Member
from a2a.errors import Error, InvalidParams
from a2a.language import Dialect, Method, Rest, Route
from a2a.requests import SendMessage
from a2a.types import Json


class ConfigParams(Struct, rename="camel"):
    config_id: str | None = None


_CONFIGS = "/tasks/{id}/pushNotificationConfigs"
_CONFIG = _CONFIGS + "/{pushNotificationConfigId}"
_MISSPELT = "/task/{id}/pushNotificationConfigs"
"""A misspelt path from an annotation of the protobuf (docs/protocol.md#rest-of-0x)."""
_ROUTES = (
    Route(verb="POST", path="/message:send", method="message/send"),
    Route(verb="POST", path="/message:stream", method="message/stream"),
    Route(verb="GET", path="/tasks", method="tasks/list", query=v0_3.ListParams),
    Route(verb="POST", path="/tasks/{id}:cancel", method="tasks/cancel"),
    # The text says POST, the protobuf GET: both (docs/protocol.md#methods-and-paths).
    Route(verb="POST", path="/tasks/{id}:subscribe", method="tasks/resubscribe"),
    Route(verb="GET", path="/tasks/{id}:subscribe", method="tasks/resubscribe"),
    Route(verb="GET", path="/tasks/{id}", method="tasks/get", query=v0_3.TaskParams),
    Route(verb="POST", path=_CONFIGS, method="tasks/pushNotificationConfig/set", query=ConfigParams),
    Route(verb="POST", path=_MISSPELT, method="tasks/pushNotificationConfig/set", query=ConfigParams),
    Route(verb="GET", path=_CONFIGS, method="tasks/pushNotificationConfig/list"),
    Route(verb="GET", path=_CONFIG, method="tasks/pushNotificationConfig/get"),
    Route(verb="DELETE", path=_CONFIG, method="tasks/pushNotificationConfig/delete"),
    Route(verb="GET", path="/card", method="agent/getAuthenticatedExtendedCard"),
)


_WRAPPED = {"pushNotificationConfig", "push_notification_config", "name"}
"""Members around a config in the protobuf. One of the official clients writes snake case."""


def form_of(body: Any) -> Dialect:
    """Return the dialect of a body; where it does not tell, that of the protobuf, which the official clients speak."""
    if not isinstance(body, dict):
        return PROTO
    message = body.get("message")
    if isinstance(message, dict):
        is_proto = "content" in message or str(message.get("role", "")).startswith("ROLE_")
        return PROTO if is_proto else KIND
    config = body.get("config")
    return KIND if isinstance(config, dict) and not _WRAPPED & config.keys() else PROTO


# ---------------------------------------------------------------- what comes in


def _named(params: Json, path: str, member: str) -> Json:
    """The params without the resource name that may repeat the path's. Raises InvalidParams if it is another."""
    params = {**params}
    name = params.pop(member, None)
    if name not in (None, "", path):
        raise InvalidParams((member, "is not that of the path"))
    return params


def _task(params: Json) -> Json:
    """The task is that of the path, whatever else names it."""
    return _named(_named(params, f"tasks/{params['id']}", "name"), params["id"], "taskId")


def _config(params: Json) -> Json:
    """Return the config from any of the forms in use: bare, inside `config`, with its resource name beside it."""
    task = f"tasks/{params['id']}"
    params = _named(_named(params, task, "parent"), params["id"], "taskId")
    asked = params.get("configId") or params.get("config_id")
    outer = params["config"] if isinstance(params.get("config"), dict) else params
    name = str(outer.get("name", ""))
    if name.startswith("tasks/") and not f"{name}/".startswith(f"{task}/"):
        raise InvalidParams(("name", "is not that of the path"))
    inner = outer.get("pushNotificationConfig") or outer.get("push_notification_config") or params.get("config") or {}
    if asked and isinstance(inner, dict):
        if inner.get("id") not in (None, "", asked):
            raise InvalidParams(("configId", "is not the id of the config"))
        inner = inner | {"id": asked}
    return {"taskId": params["id"], "pushNotificationConfig": with_schemes(inner)}


def _list(params: Json) -> Json:
    """States may be named as either JSON names them."""
    if isinstance(status := params.get("status"), str):
        return params | {"status": kind_state(status)}
    return params


# --------------------------------------------------------------- what goes out


def _inside(answer: Json) -> Json:
    """Wrap a task or a message in a member named by its kind."""
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
    """The card with its security schemes in both JSONs: some clients read it as JSON, others as protobuf. What was
    signed is another card, so no signature stays (docs/protocol.md#card-of-both)."""
    schemes = {name: scheme | _proto_scheme(scheme) for name, scheme in card.get("securitySchemes", {}).items()}
    both = card | ({"securitySchemes": schemes} if schemes else {})
    return {name: value for name, value in both.items() if name != "signatures"}


def _proto_scheme(scheme: Json) -> Json:
    if scheme["type"] == "http":
        return {"httpAuthSecurityScheme": {"scheme": scheme["scheme"]}}
    return {"apiKeySecurityScheme": {"location": scheme["in"], "name": scheme["name"]}}


def _nothing(_: Any) -> Json:
    """An empty object where JSON-RPC has null (docs/protocol.md#webhook-methods)."""
    return {}


def _same(wire: Any) -> Any:
    return wire


Change = Callable[[Any], Any]
Changes = dict[str, tuple[Change, Change]]
"""By method: of its params, and of its answer."""


def changed(method: Method, before: Change, after: Change) -> Method:
    """The method with its params changed before they are decoded, and its answer after it was encoded."""

    def decode(params: Any) -> Any:
        return method.decode(before(params))

    def encode(result: Any) -> bytes:
        return orjson.dumps(after(orjson.loads(method.encode(result))))

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


def _in_proto_words(method: Method) -> Method:
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
    match frame:
        case TaskDocument() | EventDocument(kind="task"):
            return "task"
        case EventDocument(kind="artifactUpdate"):
            return "artifactUpdate"
        case EventDocument():
            return "statusUpdate"
        case _:
            return "message"


def _kind_frame(frame: Frame, history_length: int | None) -> bytes | None:
    wire = v0_3.encode_frame(frame, history_length)
    return None if wire is None else b'{"%s":%s}' % (_frame_name(frame).encode(), wire)


def _proto_frame(frame: Frame, history_length: int | None) -> bytes | None:
    wire = v0_3.encode_frame(frame, history_length)
    return None if wire is None else orjson.dumps({_frame_name(frame): proto(orjson.loads(wire))})


def _encode_error(error: Error, status: int, name: str) -> Json:
    """Return the body of 1.0, and beside it what the official clients of 0.3 look for: code, message, class name."""
    body = encode_rest_error(error, status, name)
    kind = error.reason.title().replace("_", "") + "Error"
    return body | {"code": v0_3.DIALECT.code(error), "message": body["error"]["message"], "type": kind}


_REST = Rest(routes=_ROUTES, media="application/json", statuses=REST_STATUSES, encode_error=_encode_error)


def _dialect(name: str, changes: Changes, frame: Any, words: Callable[[Method], Method]) -> Dialect:
    methods = {
        method: words(changed(known, *changes.get(method, (_same, _same))))
        for method, known in v0_3.DIALECT.methods.items()
    }
    return replace(
        v0_3.DIALECT, name=name, methods=methods, encode_frame=frame, rest=_REST, pushes_as=v0_3.DIALECT.name
    )


KIND = _dialect("a2a-0.3-kind", KIND_CHANGES, _kind_frame, _same)
PROTO = replace(
    _dialect("a2a-0.3-proto", PROTO_CHANGES, _proto_frame, _in_proto_words),
    words=lambda error: proto_error(v0_3.words(error)),
)
_CARD = "agent/getAuthenticatedExtendedCard"
_OLD_CARD = replace(v0_3.DIALECT.methods[_CARD], encode=v0_2.encode_extended_card)
OLDEST = replace(PROTO, version=v0_2.DIALECT.version, methods=PROTO.methods | {_CARD: changed(_OLD_CARD, _same, _card)})
"""0.2, which is the same but for its card."""
DIALECTS = (PROTO, KIND, OLDEST)


def choose(
    dialects: Sequence[Dialect], languages: Any, member: Member, version: str | None, pin: str | None
) -> Dialect:
    """Pick the JSON by the body, and the card by the version, which must be that of one of these dialects.

    Raises CallError.
    """
    found = form_of(member.params)
    number = minor(version or "")
    if found is PROTO and number == OLDEST.version:
        found = OLDEST
    if version and all(dialect.version != number for dialect in dialects):
        raise CallError(version_error(version, dialects), found)
    return found
