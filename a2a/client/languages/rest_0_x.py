"""A2A 0.3 and 0.2 over REST, in the JSON of the protobuf, which the official servers use. The server's side is in
a2a/dialects/rest_0_x.py. Methods and params are those of JSON-RPC, with functions that change them."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from a2a.client.answers import ConfigPage, TaskPage
from a2a.client.language import ClientLanguage, Operation
from a2a.client.languages import v0_2, v0_3
from a2a.client.reading import Form
from a2a.client.updates import Update
from a2a.dialects.json.json_0_x import ROLES, decode_part, decode_state
from a2a.dialects.json.protobuf_0_x import PROTO_STATES, ROLES_BACK, kind_part, kind_state, proto
from a2a.dialects.rest_0_x import ROUTES
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Request,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.states import TaskState
from a2a.types import Json, Message, Part, PushConfig, Task


def _part(wire: Json, path: str) -> Part:
    return decode_part(kind_part(wire, path), path)


def _state(wire: Any, field: str) -> TaskState | None:
    return decode_state(kind_state(wire), field)


FORM = Form(
    part=_part, roles={name: ROLES[role] for name, role in ROLES_BACK.items()} | ROLES, state=_state, parts="content"
)

# ---------------------------------------------------------------- requests


def encode_send(request: SendMessage) -> Json:
    params = v0_3.encode_send(request)
    configuration = params["configuration"]
    if "pushNotificationConfig" in configuration:
        configuration["pushNotification"] = configuration.pop("pushNotificationConfig")
    return params | {"message": proto(params["message"])}


def encode_list(request: ListTasks) -> Json:
    params = v0_3.encode_list(request)
    return params | ({"status": PROTO_STATES[params["status"]]} if "status" in params else {})


def encode_set(request: CreatePushConfig) -> Json:
    task, config = f"tasks/{request.task_id}", v0_3.encode_config(request.config)
    config_id = request.config.id or ""
    inner = {"name": f"{task}/pushNotificationConfigs/{config_id}", "pushNotificationConfig": config}
    return {"id": request.task_id, "parent": task, "configId": config_id, "config": inner}


# ----------------------------------------------------------------- answers


def decode_answer(wire: Json) -> Task | Message:
    if wire.get("task") is not None:
        return FORM.task(wire["task"])
    return FORM.message(wire.get("message") or wire["msg"])


def decode_update(wire: Json) -> Update:
    return FORM.update(wire | {"message": wire.get("message") or wire.get("msg")})


def decode_page(wire: Json) -> TaskPage:
    page = v0_3.decode_page({**wire, "tasks": []})
    return replace(page, tasks=tuple(FORM.task(task) for task in wire.get("tasks") or ()))


def decode_config(wire: Json) -> PushConfig:
    """Return a webhook. Its resource name has the task, and the id if no other member has it."""
    _, task_id, _, config_id = wire["name"].split("/")
    config = v0_3.decode_config({**wire, "taskId": task_id})
    return config if config.id else replace(config, id=config_id or None)


def decode_configs(wire: Json) -> ConfigPage:
    configs = tuple(decode_config(one) for one in wire.get("configs") or ())
    return ConfigPage(configs=configs, next_page_token=wire.get("nextPageToken") or "")


_CHANGES: dict[type[Request], dict[str, Callable[[Any], Any]]] = {
    SendMessage: {"encode": encode_send, "decode": decode_answer},
    StreamMessage: {"encode": encode_send, "decode": decode_update},
    GetTask: {"decode": FORM.task},
    ListTasks: {"encode": encode_list, "decode": decode_page},
    CancelTask: {"decode": FORM.task},
    SubscribeToTask: {"decode": decode_update},
    CreatePushConfig: {"encode": encode_set, "decode": decode_config},
    GetPushConfig: {"decode": decode_config},
    ListPushConfigs: {"decode": decode_configs},
    DeletePushConfig: {},
}


def _over_rest(language: ClientLanguage) -> ClientLanguage:
    operations: dict[type[Request], Operation] = {
        kind: replace(operation, page="", **_CHANGES.get(kind, {})) for kind, operation in language.operations.items()
    }
    return replace(
        language,
        name=f"{language.name}-proto",
        operations=operations,
        update=decode_update,
        routes=ROUTES,
        prefix="/v1",
    )


LANGUAGE = _over_rest(v0_3.LANGUAGE)
OLDEST = _over_rest(v0_2.LANGUAGE)
