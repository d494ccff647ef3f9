"""The methods of webhooks in 1.0 and in 0.x. The fields of their params are in webhook_fields.py.

A2A calls a webhook a push notification config. 1.0 has its members beside the task's id, 0.x has them inside a member.
"""

from typing import Any

import orjson

from a2a.answers import PushConfigPage
from a2a.dialects.schemas import answers_0_x, answers_1_0
from a2a.dialects.webhook_fields import (
    MAX_PAGE,
    MAX_SCHEMES,
    OF_CONFIG,
    OF_TASK,
    SET,
    ConfigIdParams,
    FlatParams,
    ListConfigsParams,
    OldConfigIdParams,
    SetParams,
    config_of,
    require,
)
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import camel_names, check, read_whole
from a2a.requests import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs
from a2a.types import Json, PushConfig

# ----------------------------------------------------------------------- 1.0


def flat(params: Any) -> Any:
    """Return the params of 1.0 with camelCase names, also inside the authentication."""
    if not isinstance(params, dict):
        return params
    params = camel_names(params)
    if isinstance(inner := params.get("authentication"), dict):
        params["authentication"] = camel_names(inner)
    return params


def decode_create(params: Any) -> CreatePushConfig:
    """Decode the params of CreateTaskPushNotificationConfig. Raises InvalidParams."""
    wire = check(flat(params), FlatParams)
    task_id, config = require(wire["taskId"], "taskId"), flat_config(wire, "")
    return CreatePushConfig(tenant=wire.get("tenant") or None, task_id=task_id, config=config)


def decode_inline(wire: Json | None) -> PushConfig | None:
    """Decode the webhook inside a send, which is for the task of the message. Raises InvalidParams."""
    if wire is None:
        return None
    path = "configuration.taskPushNotificationConfig"
    if wire.get("taskId"):
        raise InvalidParams((f"{path}.taskId", "must be empty inside a send: the task is that of the message"))
    return flat_config(wire, f"{path}.")


def flat_config(wire: Json, path: str) -> PushConfig:
    """Return the webhook from the members of 1.0. Raises InvalidParams."""
    authentication = wire.get("authentication")
    field = f"{path}authentication.scheme"
    # An authentication needs a scheme: without one, deliveries would silently lack the header.
    return config_of(
        wire,
        path,
        schemes={} if authentication is None else {field: require(authentication["scheme"], field)},
        credentials=(authentication or {}).get("credentials"),
    )


def decode_get(params: Any) -> GetPushConfig:
    """Decode the params of GetTaskPushNotificationConfig. Raises InvalidParams."""
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = require(wire["taskId"], "taskId"), require(wire["id"], "id")
    return GetPushConfig(tenant=wire.get("tenant") or None, task_id=task_id, id=config_id)


def decode_list(params: Any) -> ListPushConfigs:
    """Decode the params of ListTaskPushNotificationConfigs. Raises InvalidParams."""
    wire = check(flat(params), ListConfigsParams)
    size = read_whole(wire.get("pageSize"), "pageSize", 0, MAX_PAGE)
    return ListPushConfigs(
        tenant=wire.get("tenant") or None,
        task_id=require(wire["taskId"], "taskId"),
        # ProtoJSON writes 0 for a size that is not set.
        page_size=size or MAX_PAGE,
        page_token=wire.get("pageToken") or None,
    )


def decode_delete(params: Any) -> DeletePushConfig:
    """Decode the params of DeleteTaskPushNotificationConfig. Raises InvalidParams."""
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = require(wire["taskId"], "taskId"), require(wire["id"], "id")
    return DeletePushConfig(tenant=wire.get("tenant") or None, task_id=task_id, id=config_id)


def encode_flat(config: PushConfig) -> Json:
    """Return the webhook in the JSON of 1.0, without credentials."""
    out: Json = {"id": config.id, "taskId": config.task_id, "url": config.url}
    if config.token:
        out["token"] = config.token
    if config.schemes:
        out["authentication"] = {"scheme": config.schemes[0]}
    return out


def encode_config(config: PushConfig) -> bytes:
    """Return one webhook."""
    return orjson.dumps(encode_flat(config))


def encode_configs(page: PushConfigPage) -> bytes:
    """Return a page with both members (docs/protocol.md#webhook-methods)."""
    configs = [encode_flat(config) for config in page.configs]
    return orjson.dumps({"configs": configs, "nextPageToken": page.next_page_token})


def encode_deletion(nothing: None) -> bytes:
    """Return the empty result of 1.0."""
    return b"{}"


# ----------------------------------------------------------------------- 0.x


def decode_set(params: Any) -> CreatePushConfig:
    """Decode the params of tasks/pushNotificationConfig/set. Raises InvalidParams."""
    wire = check(params, SetParams)
    task_id = require(wire.get("taskId"), "taskId")
    config = decode_old_config(wire["pushNotificationConfig"], "pushNotificationConfig.")
    return CreatePushConfig(task_id=task_id, config=config)


def decode_old_inline(wire: Json | None) -> PushConfig | None:
    """Decode the webhook inside a send, which is for the task of the message. Raises InvalidParams."""
    return None if wire is None else decode_old_config(wire, "configuration.pushNotificationConfig.")


def decode_old_config(wire: Json, path: str) -> PushConfig:
    """Return the webhook from the members of 0.x at this path in the params. Raises InvalidParams."""
    authentication = wire.get("authentication") or {}
    schemes = authentication.get("schemes") or []
    if len(schemes) > MAX_SCHEMES:
        raise InvalidParams((f"{path}authentication.schemes", f"must have {MAX_SCHEMES} names at most"))
    return config_of(
        wire,
        path,
        schemes={f"{path}authentication.schemes[{place}]": name for place, name in enumerate(schemes)},
        credentials=authentication.get("credentials"),
    )


def decode_old_get(params: Any) -> GetPushConfig:
    """Decode the params of tasks/pushNotificationConfig/get. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    task_id = require(wire.get("id") or wire.get("taskId"), "id")
    config_id = wire.get("pushNotificationConfigId") or None
    # Some clients, such as the official conformance kit, set a webhook without an id and read it as "default".
    return GetPushConfig(task_id=task_id, id=config_id, or_default=config_id == "default")


def decode_old_list(params: Any) -> ListPushConfigs:
    """Decode the params of tasks/pushNotificationConfig/list. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    return ListPushConfigs(task_id=require(wire.get("id") or wire.get("taskId"), "id"), page_size=MAX_PAGE)


def decode_old_delete(params: Any) -> DeletePushConfig:
    """Decode the params of tasks/pushNotificationConfig/delete. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    task_id = require(wire.get("id") or wire.get("taskId"), "id")
    config_id = require(wire.get("pushNotificationConfigId"), "pushNotificationConfigId")
    return DeletePushConfig(task_id=task_id, id=config_id, or_default=config_id == "default")


def encode_old(config: PushConfig) -> Json:
    """Return the webhook in the JSON of 0.x, without credentials."""
    out: Json = {"id": config.id, "url": config.url}
    if config.token:
        out["token"] = config.token
    if config.schemes:
        out["authentication"] = {"schemes": config.schemes}
    return {"taskId": config.task_id, "pushNotificationConfig": out}


def encode_old_config(config: PushConfig) -> bytes:
    """Return one webhook."""
    return orjson.dumps(encode_old(config))


def encode_old_configs(page: PushConfigPage) -> bytes:
    """Return the webhooks as an array (docs/protocol.md#webhook-methods)."""
    return orjson.dumps([encode_old(config) for config in page.configs])


def encode_old_deletion(nothing: None) -> bytes:
    """Return the empty result of 0.x."""
    return b"null"


METHODS = {
    "CreateTaskPushNotificationConfig": Method(
        request=CreatePushConfig,
        decode=decode_create,
        encode=encode_config,
        params=FlatParams,
        result=answers_1_0.TaskPushNotificationConfig,
    ),
    "GetTaskPushNotificationConfig": Method(
        request=GetPushConfig,
        decode=decode_get,
        encode=encode_config,
        params=ConfigIdParams,
        result=answers_1_0.TaskPushNotificationConfig,
    ),
    "ListTaskPushNotificationConfigs": Method(
        request=ListPushConfigs,
        decode=decode_list,
        encode=encode_configs,
        params=ListConfigsParams,
        result=answers_1_0.PushNotificationConfigPage,
    ),
    "DeleteTaskPushNotificationConfig": Method(
        request=DeletePushConfig,
        decode=decode_delete,
        encode=encode_deletion,
        params=ConfigIdParams,
        result=answers_1_0.Empty,
    ),
}
"""The methods of A2A 1.0 for webhooks."""

_NAME = "tasks/pushNotificationConfig"
_RESULT = answers_0_x.TaskPushNotificationConfig
OLD_METHODS = {
    f"{_NAME}/set": Method(
        request=CreatePushConfig, decode=decode_set, encode=encode_old_config, params=SET, result=_RESULT
    ),
    f"{_NAME}/get": Method(
        request=GetPushConfig, decode=decode_old_get, encode=encode_old_config, params=OF_TASK, result=_RESULT
    ),
    f"{_NAME}/list": Method(
        request=ListPushConfigs,
        decode=decode_old_list,
        encode=encode_old_configs,
        params=OF_TASK,
        result=list[_RESULT],
    ),
    f"{_NAME}/delete": Method(
        request=DeletePushConfig, decode=decode_old_delete, encode=encode_old_deletion, params=OF_CONFIG, result=None
    ),
}
"""The methods of A2A 0.x for webhooks."""
