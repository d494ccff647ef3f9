"""The translation between the ProtoJSON of a2a.v1, which clients of 0.x speak over REST, and the JSON with `kind`
(docs/protocol.md#rest-of-0x).

The decoders of the JSON with `kind` check the result, so this module checks only what the translation itself needs.
"""

from collections.abc import Callable
from typing import Any

from a2a.dialects.json.json_0_x import STATES
from a2a.errors import Error, InvalidParams
from a2a.params import camel_names, read_number
from a2a.states import TaskState
from a2a.types import Json

PROTO_STATES = {
    name: "TASK_STATE_CANCELLED" if state is TaskState.CANCELED else f"TASK_STATE_{state.name}"
    for state, name in STATES.items()
}
_STATES_BACK = {proto: kind for kind, proto in PROTO_STATES.items()} | {
    "TASK_STATE_CANCELED": STATES[TaskState.CANCELED],
    "TASK_STATE_UNSPECIFIED": "unknown",
}
_ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
ROLES_BACK: dict[Any, str] = {"ROLE_USER": "user", "ROLE_AGENT": "agent", 1: "user", 2: "agent"}
_FILES = {"bytes": "fileWithBytes", "uri": "fileWithUri"}
_FILES_BACK = {proto: kind for kind, proto in _FILES.items()}
_FIELDS = (
    ("message.parts", "message.content"),
    (".file.bytes", ".file.fileWithBytes"),
    (".file.uri", ".file.fileWithUri"),
    ("configuration.pushNotificationConfig", "configuration.pushNotification"),
)
"""Paths of fields, in the JSON with `kind` and in the protobuf's."""
_WORDS = (("bytes, data, uri", "fileWithBytes, fileWithUri"), ("`parts`", "`content`"))
"""Words of error messages, in the JSON with `kind` and in the protobuf's."""


# ------------------------------------------------------------------ requests


def kind_send(params: Json) -> Json:
    """Translate the params of a send. 0.2.6 and one of the official clients call the message `request`."""
    params = dict(params)
    if "request" in params and "message" not in params:
        params["message"] = params.pop("request")
    if isinstance(message := params.get("message"), dict):
        params["message"] = _kind_message(message)
    if isinstance(configuration := params.get("configuration"), dict):
        params["configuration"] = _kind_configuration(configuration)
    return params


def kind_state(name: str) -> str:
    """Translate the name of a state. An unknown name stays as it is, and is refused later."""
    return _STATES_BACK.get(name, name)


def _kind_message(message: Json) -> Json:
    message = dict(camel_names(message))
    # In this JSON the parts are `content`; a member `parts` is unknown and ignored.
    if message.pop("parts", None) is not None and message.get("content") is None:
        raise InvalidParams(("message.content", "is required: parts is for messages whose role is user, not ROLE_USER"))
    if "content" in message:
        message["parts"] = message.pop("content")
    if isinstance(parts := message.get("parts"), list):
        message["parts"] = [
            kind_part(part, f"message.parts[{place}]") if isinstance(part, dict) else part
            for place, part in enumerate(parts)
        ]
    role = message.get("role")
    if isinstance(role, str | int) and not isinstance(role, bool):
        if role not in ROLES_BACK:
            raise InvalidParams(("message.role", "must be ROLE_USER"))
        message["role"] = ROLES_BACK[role]
    return message


def kind_part(part: Json, path: str) -> Json:
    """Translate a part. Raises InvalidParams with the path for data without its value."""
    part = dict(part)
    if isinstance(file := part.get("file"), dict):
        part["file"] = {_FILES_BACK.get(name, name): value for name, value in camel_names(file).items()}
    if isinstance(data := part.get("data"), dict):
        if data and "data" not in data:
            raise InvalidParams((f"{path}.data.data", "is required"))
        part["data"] = {} if data.get("data") is None else data["data"]
    return part


def _kind_configuration(configuration: Json) -> Json:
    """Translate the configuration of a send.

    ProtoJSON omits default values. An absent `blocking` is false, and an absent history length is 0, which means all
    messages (docs/protocol.md#history-length).
    """
    configuration = {**camel_names(configuration)}
    if configuration.get("blocking") is None:
        configuration["blocking"] = False
    if "pushNotification" in configuration:
        configuration["pushNotificationConfig"] = with_schemes(configuration.pop("pushNotification"))
    length = configuration.get("historyLength")
    if isinstance(length, str) and (number := read_number(length)) is not None:
        configuration["historyLength"] = length = number
    if length == 0 and not isinstance(length, bool):
        del configuration["historyLength"]
    return configuration


def with_schemes(config: Any) -> Any:
    """Return a webhook with its list of schemes, which ProtoJSON omits if it is empty."""
    if isinstance(config, dict) and isinstance(config.get("authentication"), dict):
        return config | {"authentication": {"schemes": []} | config["authentication"]}
    return config


def proto_words(error: InvalidParams) -> InvalidParams:
    """Return the error with the field names of the protobuf, which the caller sent."""
    return InvalidParams(
        *((proto_field(field), _replace(text, _WORDS)) for field, text in error.violations), **error.facts
    )


def proto_error(error: Error) -> Error:
    """Return an operation's error with the field names of the protobuf."""
    if isinstance(error, InvalidParams):
        return proto_words(error)
    if "part" in error.facts:
        error.facts["part"] = proto_field(error.facts["part"])
    return error


def proto_field(field: str) -> str:
    """Return the protobuf's path of a field."""
    return _replace(field, _FIELDS)


def _replace(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


# ------------------------------------------------------------------- answers


def proto(wire: Json) -> Json:
    """Translate a task, a message or an event of a stream. ProtoJSON omits members that are false or empty."""
    encode = _ENCODERS.get(wire.get("kind", ""))
    members = (encode(wire) if encode else wire).items()
    return {name: value for name, value in members if name != "kind" and value is not False and value != {}}


def _proto_task(task: Json) -> Json:
    lists = {
        "artifacts": [_proto_artifact(artifact) for artifact in task.get("artifacts", ())],
        "history": [proto(message) for message in task.get("history", ())],
    }
    return task | {"status": _proto_status(task["status"])} | {name: value for name, value in lists.items() if value}


def _proto_status(status: Json) -> Json:
    message = {"message": proto(status["message"])} if "message" in status else {}
    return status | {"state": PROTO_STATES[status["state"]]} | message


def _proto_message(message: Json) -> Json:
    """Translate a message. The protobuf has no references to other tasks, and strict clients refuse unknown members."""
    members = {name: value for name, value in message.items() if name not in {"parts", "referenceTaskIds"}}
    return members | {"role": _ROLES[message["role"]], "content": [_proto_part(part) for part in message["parts"]]}


def _proto_artifact(artifact: Json) -> Json:
    return artifact | {"parts": [_proto_part(part) for part in artifact["parts"]]}


def _proto_part(part: Json) -> Json:
    content: Json = {name: value for name, value in part.items() if name != "kind"}
    if "data" in content:
        content["data"] = {"data": content["data"]}
    if "file" in content:
        content["file"] = {_FILES.get(name, name): value for name, value in content["file"].items()}
    return content


_ENCODERS: dict[str, Callable[[Json], Json]] = {
    "task": _proto_task,
    "message": _proto_message,
    "status-update": lambda event: event | {"status": _proto_status(event["status"])},
    "artifact-update": lambda event: event | {"artifact": _proto_artifact(event["artifact"])},
}
