"""The methods of webhooks in 1.0 and in 0.x: params, results, and the limits of the fields.

A2A calls a webhook a push notification config. 1.0 has its members beside the task's id, 0.x has them inside a member.
tasks_app/outbound checks whether its address may be called.
"""

import binascii
import re
from base64 import b64decode
from typing import Any

import orjson
from msgspec import Struct

from a2a.answers import PushConfigPage
from a2a.dialects.params import Whole, camel_names, check, read_whole
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.requests import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs
from a2a.types import Json, PushConfig

MAX_ID, MAX_URL, MAX_TOKEN, MAX_CREDENTIALS, MAX_SCHEMES = 255, 2_048, 1_024, 4_096, 8
MAX_PAGE = 100
"""The most webhooks on one page of a list."""
SIGNING_SCHEME = "standardwebhooks"
"""The authentication scheme, in lower case, whose credentials are a signing secret. Deliveries never contain it."""
_SECRET_BYTES = range(24, 65)
"""The sizes of a signing secret."""
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""The pattern of text that is safe in a header. A line break would begin another header."""


class AuthenticationParams(Struct, rename="camel"):
    scheme: str
    credentials: str | None = None


class FlatParams(Struct, rename="camel"):
    task_id: str
    url: str
    tenant: str | None = None
    id: str | None = None
    token: str | None = None
    authentication: AuthenticationParams | None = None


class InlineParams(Struct, rename="camel"):
    url: str
    tenant: str | None = None
    task_id: str | None = None
    id: str | None = None
    token: str | None = None
    authentication: AuthenticationParams | None = None


class ConfigIdParams(Struct, rename="camel"):
    task_id: str
    id: str
    tenant: str | None = None


class ListParams(Struct, rename="camel"):
    task_id: str
    tenant: str | None = None
    page_size: Whole | None = None
    page_token: str | None = None


class OldAuthenticationParams(Struct, rename="camel"):
    schemes: list[str]
    credentials: str | None = None


class OldConfigParams(Struct, rename="camel"):
    url: str
    id: str | None = None
    token: str | None = None
    authentication: OldAuthenticationParams | None = None


class SetParams(Struct, rename="camel"):
    push_notification_config: OldConfigParams
    task_id: str | None = None
    metadata: Json | None = None


class OldConfigIdParams(Struct, rename="camel"):
    id: str | None = None
    task_id: str | None = None
    push_notification_config_id: str | None = None
    metadata: Json | None = None


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
    task_id, config = _require(wire["taskId"], "taskId"), flat_config(wire, "")
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
    return _config(
        wire,
        path,
        schemes={} if authentication is None else {field: _require(authentication["scheme"], field)},
        credentials=(authentication or {}).get("credentials"),
    )


def decode_get(params: Any) -> GetPushConfig:
    """Decode the params of GetTaskPushNotificationConfig. Raises InvalidParams."""
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = _require(wire["taskId"], "taskId"), _require(wire["id"], "id")
    return GetPushConfig(tenant=wire.get("tenant") or None, task_id=task_id, id=config_id)


def decode_list(params: Any) -> ListPushConfigs:
    """Decode the params of ListTaskPushNotificationConfigs. Raises InvalidParams."""
    wire = check(flat(params), ListParams)
    size = read_whole(wire.get("pageSize"), "pageSize", 0, MAX_PAGE)
    return ListPushConfigs(
        tenant=wire.get("tenant") or None,
        task_id=_require(wire["taskId"], "taskId"),
        # ProtoJSON writes 0 for a size that is not set.
        page_size=size or MAX_PAGE,
        page_token=wire.get("pageToken") or None,
    )


def decode_delete(params: Any) -> DeletePushConfig:
    """Decode the params of DeleteTaskPushNotificationConfig. Raises InvalidParams."""
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = _require(wire["taskId"], "taskId"), _require(wire["id"], "id")
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
    task_id = _require(wire.get("taskId"), "taskId")
    config = _old_config(wire["pushNotificationConfig"], "pushNotificationConfig.")
    return CreatePushConfig(task_id=task_id, config=config)


def decode_old_inline(wire: Json | None) -> PushConfig | None:
    """Decode the webhook inside a send, which is for the task of the message. Raises InvalidParams."""
    return None if wire is None else _old_config(wire, "configuration.pushNotificationConfig.")


def _old_config(wire: Json, path: str) -> PushConfig:
    """Return the webhook from the members of 0.x. Raises InvalidParams."""
    authentication = wire.get("authentication") or {}
    schemes = authentication.get("schemes") or []
    if len(schemes) > MAX_SCHEMES:
        raise InvalidParams((f"{path}authentication.schemes", f"must have {MAX_SCHEMES} names at most"))
    return _config(
        wire,
        path,
        schemes={f"{path}authentication.schemes[{place}]": name for place, name in enumerate(schemes)},
        credentials=authentication.get("credentials"),
    )


def decode_old_get(params: Any) -> GetPushConfig:
    """Decode the params of tasks/pushNotificationConfig/get. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    task_id = _require(wire.get("id") or wire.get("taskId"), "id")
    config_id = wire.get("pushNotificationConfigId") or None
    # Some clients, such as the official conformance kit, set a webhook without an id and read it as "default".
    return GetPushConfig(task_id=task_id, id=config_id, or_default=config_id == "default")


def decode_old_list(params: Any) -> ListPushConfigs:
    """Decode the params of tasks/pushNotificationConfig/list. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    return ListPushConfigs(task_id=_require(wire.get("id") or wire.get("taskId"), "id"), page_size=MAX_PAGE)


def decode_old_delete(params: Any) -> DeletePushConfig:
    """Decode the params of tasks/pushNotificationConfig/delete. Raises InvalidParams."""
    wire = check(params, OldConfigIdParams)
    task_id = _require(wire.get("id") or wire.get("taskId"), "id")
    config_id = _require(wire.get("pushNotificationConfigId"), "pushNotificationConfigId")
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


# -------------------------------------------------------------------- checks


def _require(value: str | None, field: str) -> str:
    """Return a text that must not be empty. Raises InvalidParams."""
    if not value:
        raise InvalidParams((field, "is required" if value is None else "must not be empty"))
    return value


def _config(wire: Json, path: str, *, schemes: dict[str, str], credentials: str | None) -> PushConfig:
    """Return a webhook whose fields have the right form. `schemes` has each scheme by its path in the params.

    Raises InvalidParams for a field that is too long or not safe in a header.
    """
    field = f"{path}authentication.credentials"
    config_id = wire.get("id") or None
    if config_id is not None:
        _check_id(config_id, f"{path}id")
    url = _require(wire["url"], f"{path}url")
    if len(url) > MAX_URL:
        raise InvalidParams((f"{path}url", f"must have {MAX_URL} characters at most, not {len(url)}"))
    token = wire.get("token") or None
    _check_header(token, f"{path}token", MAX_TOKEN)
    for place, name in schemes.items():
        if _SCHEME.fullmatch(name) is None:
            raise InvalidParams((place, "must be the name of an HTTP authentication scheme, such as Bearer"))
    names = tuple(schemes.values())
    _check_header(credentials or None, field, MAX_CREDENTIALS)
    if credentials and not names:
        raise InvalidParams((field, "need a scheme beside them"))
    if names and names[0].lower() == SIGNING_SCHEME:
        _check_secret(credentials or "", field)
    return PushConfig(
        id=config_id,
        url=url,
        token=token,
        schemes=names,
        credentials=credentials or None,
        path=f"{path}url",
    )


def _check_id(config_id: str, field: str) -> None:
    """Raise InvalidParams for an id that cannot be stored, or cannot be part of a path over REST."""
    if len(config_id) > MAX_ID or not config_id.isprintable():
        raise InvalidParams((field, f"must have {MAX_ID} printable characters at most"))
    if "/" in config_id or config_id in {".", ".."}:
        raise InvalidParams((field, 'must hold no slash and not be "." or "..": over REST it is one segment of a path'))


def _check_header(value: str | None, field: str, most: int) -> None:
    """Raise InvalidParams for text that is too long or not safe in a header."""
    if value is None:
        return
    if len(value) > most:
        raise InvalidParams((field, f"must have {most} characters at most, not {len(value)}"))
    if _HEADER.fullmatch(value) is None:
        raise InvalidParams((field, "is sent in a header: it must be printable ASCII without spaces at its ends"))


def _check_secret(secret: str, field: str) -> None:
    """Raise InvalidParams for text that is not a signing secret of Standard Webhooks."""
    try:
        size = len(b64decode(secret.removeprefix("whsec_"), validate=True)) if secret.startswith("whsec_") else 0
    except (binascii.Error, ValueError):
        size = 0
    if size not in _SECRET_BYTES:
        raise InvalidParams((field, "must be a secret of Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes"))


METHODS = {
    "CreateTaskPushNotificationConfig": Method(request=CreatePushConfig, decode=decode_create, encode=encode_config),
    "GetTaskPushNotificationConfig": Method(request=GetPushConfig, decode=decode_get, encode=encode_config),
    "ListTaskPushNotificationConfigs": Method(request=ListPushConfigs, decode=decode_list, encode=encode_configs),
    "DeleteTaskPushNotificationConfig": Method(request=DeletePushConfig, decode=decode_delete, encode=encode_deletion),
}
"""The methods of A2A 1.0 for webhooks."""

_NAME = "tasks/pushNotificationConfig"
OLD_METHODS = {
    f"{_NAME}/set": Method(request=CreatePushConfig, decode=decode_set, encode=encode_old_config),
    f"{_NAME}/get": Method(request=GetPushConfig, decode=decode_old_get, encode=encode_old_config),
    f"{_NAME}/list": Method(request=ListPushConfigs, decode=decode_old_list, encode=encode_old_configs),
    f"{_NAME}/delete": Method(request=DeletePushConfig, decode=decode_old_delete, encode=encode_old_deletion),
}
"""The methods of A2A 0.x for webhooks."""
