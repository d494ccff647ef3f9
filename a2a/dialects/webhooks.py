"""Webhook configs on the wire: flat in 1.0, wrapped with the task's id in 0.x; and the limits of their fields.

Whether an address may be called is decided elsewhere: that takes a look at the network.
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
SIGNING_SCHEME = "standardwebhooks"
"""The authentication scheme, in lower case, whose credentials are a secret to sign with and are never sent."""
_SECRET_BYTES = range(24, 65)
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""Text that may stand in a header unchanged: a line break would begin another header."""


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
    """The params of 1.0 with camelCase names, down to the authentication."""
    if not isinstance(params, dict):
        return params
    params = camel_names(params)
    if isinstance(inner := params.get("authentication"), dict):
        params["authentication"] = camel_names(inner)
    return params


def decode_create(params: Any) -> CreatePushConfig:
    wire = check(flat(params), FlatParams)
    task_id, config = _named(wire["taskId"], "taskId"), flat_config(wire, "")
    return CreatePushConfig(tenant=wire.get("tenant") or None, task_id=task_id, config=config)


def decode_inline(wire: Json | None) -> PushConfig | None:
    """The config inside a send: the task is the one that the send makes or continues."""
    if wire is None:
        return None
    path = "configuration.taskPushNotificationConfig"
    if wire.get("taskId"):
        raise InvalidParams((f"{path}.taskId", "must be empty inside a send: the task is that of the message"))
    return flat_config(wire, f"{path}.")


def flat_config(wire: Json, path: str) -> PushConfig:
    authentication = wire.get("authentication")
    field = f"{path}authentication.scheme"
    # Without one, deliveries would come without the header that was asked for, and nobody would be told.
    return _config(
        wire,
        path,
        schemes={} if authentication is None else {field: _named(authentication["scheme"], field)},
        credentials=(authentication or {}).get("credentials"),
    )


def decode_get(params: Any) -> GetPushConfig:
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = _named(wire["taskId"], "taskId"), _named(wire["id"], "id")
    return GetPushConfig(tenant=wire.get("tenant") or None, task_id=task_id, id=config_id)


def decode_list(params: Any) -> ListPushConfigs:
    wire = check(flat(params), ListParams)
    size = read_whole(wire.get("pageSize"), "pageSize", 0, MAX_PAGE)
    return ListPushConfigs(
        tenant=wire.get("tenant") or None,
        task_id=_named(wire["taskId"], "taskId"),
        # Zero is what ProtoJSON writes for a size that is not set.
        page_size=size or MAX_PAGE,
        page_token=wire.get("pageToken") or None,
    )


def decode_delete(params: Any) -> DeletePushConfig:
    wire = check(flat(params), ConfigIdParams)
    task_id, config_id = _named(wire["taskId"], "taskId"), _named(wire["id"], "id")
    return DeletePushConfig(tenant=wire.get("tenant") or None, task_id=task_id, id=config_id)


def encode_flat(config: PushConfig) -> Json:
    out: Json = {"id": config.id, "taskId": config.task_id, "url": config.url}
    if config.token:
        out["token"] = config.token
    if config.schemes:
        out["authentication"] = {"scheme": config.schemes[0]}
    return out


def encode_config(config: PushConfig) -> bytes:
    return orjson.dumps(encode_flat(config))


def encode_configs(page: PushConfigPage) -> bytes:
    """Both members are always there (docs/protocol.md#webhook-methods)."""
    configs = [encode_flat(config) for config in page.configs]
    return orjson.dumps({"configs": configs, "nextPageToken": page.next_page_token})


def encode_deleted(nothing: None) -> bytes:
    return b"{}"


# ----------------------------------------------------------------------- 0.x


def decode_set(params: Any) -> CreatePushConfig:
    wire = check(params, SetParams)
    task_id = _named(wire.get("taskId"), "taskId")
    config = _old_config(wire["pushNotificationConfig"], "pushNotificationConfig.")
    return CreatePushConfig(task_id=task_id, config=config)


def decode_old_inline(wire: Json | None) -> PushConfig | None:
    """The config inside a send."""
    return None if wire is None else _old_config(wire, "configuration.pushNotificationConfig.")


def _old_config(wire: Json, path: str) -> PushConfig:
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
    wire = check(params, OldConfigIdParams)
    task_id = _named(wire.get("id") or wire.get("taskId"), "id")
    config_id = wire.get("pushNotificationConfigId") or None
    # So some clients, the official kit among them, call what they have set without an id.
    return GetPushConfig(task_id=task_id, id=config_id, or_default=config_id == "default")


def decode_old_list(params: Any) -> ListPushConfigs:
    wire = check(params, OldConfigIdParams)
    return ListPushConfigs(task_id=_named(wire.get("id") or wire.get("taskId"), "id"), page_size=MAX_PAGE)


def decode_old_delete(params: Any) -> DeletePushConfig:
    wire = check(params, OldConfigIdParams)
    task_id = _named(wire.get("id") or wire.get("taskId"), "id")
    config_id = _named(wire.get("pushNotificationConfigId"), "pushNotificationConfigId")
    return DeletePushConfig(task_id=task_id, id=config_id, or_default=config_id == "default")


def encode_wrapped(config: PushConfig) -> Json:
    out: Json = {"id": config.id, "url": config.url}
    if config.token:
        out["token"] = config.token
    if config.schemes:
        out["authentication"] = {"schemes": config.schemes}
    return {"taskId": config.task_id, "pushNotificationConfig": out}


def encode_old_config(config: PushConfig) -> bytes:
    return orjson.dumps(encode_wrapped(config))


def encode_old_configs(page: PushConfigPage) -> bytes:
    """A bare array (docs/protocol.md#webhook-methods)."""
    return orjson.dumps([encode_wrapped(config) for config in page.configs])


def encode_old_deleted(nothing: None) -> bytes:
    return b"null"


# -------------------------------------------------------------------- checks


def _named(value: str | None, field: str) -> str:
    if not value:
        raise InvalidParams((field, "is required" if value is None else "must not be empty"))
    return value


def _config(wire: Json, path: str, *, schemes: dict[str, str], credentials: str | None) -> PushConfig:
    """The config, once all but its address is known to be fit for a header. Raises InvalidParams."""
    field = f"{path}authentication.credentials"
    config_id = wire.get("id") or None
    if config_id is not None:
        _check_id(config_id, f"{path}id")
    url = _named(wire["url"], f"{path}url")
    if len(url) > MAX_URL:
        raise InvalidParams((f"{path}url", f"must have {MAX_URL} characters at most, not {len(url)}"))
    token = wire.get("token") or None
    _fit(token, f"{path}token", MAX_TOKEN)
    for place, name in schemes.items():
        if _SCHEME.fullmatch(name) is None:
            raise InvalidParams((place, "must be the name of an HTTP authentication scheme, such as Bearer"))
    names = tuple(schemes.values())
    _fit(credentials or None, field, MAX_CREDENTIALS)
    if credentials and not names:
        raise InvalidParams((field, "need a scheme beside them"))
    if names and names[0].lower() == SIGNING_SCHEME:
        _secret(credentials or "", field)
    return PushConfig(
        id=config_id,
        url=url,
        token=token,
        schemes=names,
        credentials=credentials or None,
        path=f"{path}url",
    )


def _check_id(config_id: str, field: str) -> None:
    """Raises InvalidParams for an id that could not be stored, or could not stand in the path of a REST call."""
    if len(config_id) > MAX_ID or not config_id.isprintable():
        raise InvalidParams((field, f"must have {MAX_ID} printable characters at most"))
    if "/" in config_id or config_id in {".", ".."}:
        raise InvalidParams((field, 'must hold no slash and not be "." or "..": over REST it is one segment of a path'))


def _fit(value: str | None, field: str, most: int) -> None:
    """Raises InvalidParams for what a header cannot hold."""
    if value is None:
        return
    if len(value) > most:
        raise InvalidParams((field, f"must have {most} characters at most, not {len(value)}"))
    if _HEADER.fullmatch(value) is None:
        raise InvalidParams((field, "is sent in a header: it must be printable ASCII without spaces at its ends"))


def _secret(secret: str, field: str) -> None:
    """Raises InvalidParams for what is no signing secret of Standard Webhooks."""
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
    "DeleteTaskPushNotificationConfig": Method(request=DeletePushConfig, decode=decode_delete, encode=encode_deleted),
}
"""Methods of A2A 1.0."""

_NAME = "tasks/pushNotificationConfig"
OLD_METHODS = {
    f"{_NAME}/set": Method(request=CreatePushConfig, decode=decode_set, encode=encode_old_config),
    f"{_NAME}/get": Method(request=GetPushConfig, decode=decode_old_get, encode=encode_old_config),
    f"{_NAME}/list": Method(request=ListPushConfigs, decode=decode_old_list, encode=encode_old_configs),
    f"{_NAME}/delete": Method(request=DeletePushConfig, decode=decode_old_delete, encode=encode_old_deleted),
}
"""Methods of A2A 0.x."""
