"""The ProtoJSON of a2a.v1, which clients of 0.x speak over REST, from and to the JSON with `kind`
(docs/protocol.md#rest-of-0x).

Nothing here is checked that the dialect with `kind` checks by itself.
"""

from collections.abc import Callable
from typing import Any

from a2a.dialects.json.json_0_x import STATES
from a2a.dialects.params import camel_names, read_number
from a2a.errors import Error, InvalidParams
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
_ROLES_BACK: dict[Any, str] = {"ROLE_USER": "user", "ROLE_AGENT": "agent", 1: "user", 2: "agent"}
_FILES = {"bytes": "fileWithBytes", "uri": "fileWithUri"}
_FILES_BACK = {proto: kind for kind, proto in _FILES.items()}
_FIELDS = (
    ("message.parts", "message.content"),
    (".file.bytes", ".file.fileWithBytes"),
    (".file.uri", ".file.fileWithUri"),
    ("configuration.pushNotificationConfig", "configuration.pushNotification"),
)
_WORDS = (("bytes, data, uri", "fileWithBytes, fileWithUri"), ("`parts`", "`content`"))


# ------------------------------------------------------------- what comes in


def kind_send(params: Json) -> Json:
    """The params of a send. 0.2.6 and one of the official clients call the message `request`."""
    params = dict(params)
    if "request" in params and "message" not in params:
        params["message"] = params.pop("request")
    if isinstance(message := params.get("message"), dict):
        params["message"] = _kind_message(message)
    if isinstance(configuration := params.get("configuration"), dict):
        params["configuration"] = _kind_configuration(configuration)
    return params


def kind_state(name: str) -> str:
    """The name of a state; what is not known is left to be refused."""
    return _STATES_BACK.get(name, name)


def _kind_message(message: Json) -> Json:
    message = dict(camel_names(message))
    # A member `parts` is of another JSON: it says nothing here.
    message.pop("parts", None)
    if "content" in message:
        message["parts"] = message.pop("content")
    if isinstance(parts := message.get("parts"), list):
        message["parts"] = [
            _kind_part(part, f"message.parts[{place}]") if isinstance(part, dict) else part
            for place, part in enumerate(parts)
        ]
    role = message.get("role")
    if isinstance(role, str | int) and not isinstance(role, bool):
        if role not in _ROLES_BACK:
            raise InvalidParams(("message.role", "must be ROLE_USER or ROLE_AGENT"))
        message["role"] = _ROLES_BACK[role]
    return message


def _kind_part(part: Json, path: str) -> Json:
    part = dict(part)
    if isinstance(file := part.get("file"), dict):
        part["file"] = {_FILES_BACK.get(name, name): value for name, value in camel_names(file).items()}
    if isinstance(data := part.get("data"), dict):
        if data and "data" not in data:
            raise InvalidParams((f"{path}.data.data", "is required"))
        part["data"] = {} if data.get("data") is None else data["data"]
    return part


def _kind_configuration(configuration: Json) -> Json:
    """ProtoJSON leaves defaults out: a missing `blocking` is false, and a missing history length is 0
    (docs/protocol.md#history-length)."""
    configuration = {"blocking": False} | camel_names(configuration)
    if "pushNotification" in configuration:
        configuration["pushNotificationConfig"] = with_schemes(configuration.pop("pushNotification"))
    length = configuration.get("historyLength")
    if isinstance(length, str) and (number := read_number(length)) is not None:
        configuration["historyLength"] = length = number
    if length == 0 and not isinstance(length, bool):
        del configuration["historyLength"]
    return configuration


def with_schemes(config: Any) -> Any:
    """A webhook's config; ProtoJSON leaves out lists that are empty."""
    if isinstance(config, dict) and isinstance(config.get("authentication"), dict):
        return config | {"authentication": {"schemes": []} | config["authentication"]}
    return config


def proto_words(error: InvalidParams) -> InvalidParams:
    """The fields that are wrong, by the names they were sent under."""
    return InvalidParams(
        *((proto_field(field), _replaced(text, _WORDS)) for field, text in error.violations), **error.facts
    )


def proto_error(error: Error) -> Error:
    """Return an error of an operation with the fields named as they were sent."""
    if isinstance(error, InvalidParams):
        return proto_words(error)
    if "part" in error.facts:
        error.facts["part"] = proto_field(error.facts["part"])
    return error


def proto_field(field: str) -> str:
    """The name under which a field was sent."""
    return _replaced(field, _FIELDS)


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


# ------------------------------------------------------------- what goes out


def proto(wire: Json) -> Json:
    """A task, a message or an event of a stream; ProtoJSON leaves out what is false or empty."""
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
    said = {"message": proto(status["message"])} if "message" in status else {}
    return status | {"state": PROTO_STATES[status["state"]]} | said


def _proto_message(message: Json) -> Json:
    """Its protobuf has no reference to other tasks, and strict clients refuse what it does not have."""
    kept = {name: value for name, value in message.items() if name not in {"parts", "referenceTaskIds"}}
    return kept | {"role": _ROLES[message["role"]], "content": [_proto_part(part) for part in message["parts"]]}


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
