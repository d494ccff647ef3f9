"""The fields of a webhook in the params of 1.0 and 0.x: their types, limits and checks.

tasks_app/outbound checks whether its address may be called.
"""

import binascii
import re
from base64 import b64decode
from typing import Annotated

from msgspec import Struct

from a2a.errors import InvalidParams
from a2a.params import NAMES_TASK, Text, Whole, rule, whole
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
ConfigId = Annotated[str, rule(maxLength=MAX_ID, pattern=r"^(?!\.{1,2}$)[^/\x00-\x1f\x7f]*$")]
Url = Annotated[str, rule(minLength=1, maxLength=MAX_URL)]
Header = Annotated[str, rule(maxLength=MAX_TOKEN, pattern=f"^({_HEADER.pattern})?$")]
Credentials = Annotated[str, rule(maxLength=MAX_CREDENTIALS, pattern=f"^({_HEADER.pattern})?$")]
Scheme = Annotated[str, rule(pattern=f"^{_SCHEME.pattern}$")]
Schemes = Annotated[list[Scheme], rule(maxItems=MAX_SCHEMES)]


class AuthenticationParams(Struct, rename="camel"):
    scheme: Scheme
    credentials: Credentials | None = None


class FlatParams(Struct, rename="camel"):
    task_id: Text
    url: Url
    tenant: str | None = None
    id: ConfigId | None = None
    token: Header | None = None
    authentication: AuthenticationParams | None = None


class InlineParams(Struct, rename="camel"):
    url: Url
    tenant: str | None = None
    task_id: Annotated[str | None, rule(maxLength=0)] = None
    id: ConfigId | None = None
    token: Header | None = None
    authentication: AuthenticationParams | None = None


class ConfigIdParams(Struct, rename="camel"):
    task_id: Text
    id: Text
    tenant: str | None = None


class ListConfigsParams(Struct, rename="camel"):
    task_id: Text
    tenant: str | None = None
    page_size: Annotated[Whole | None, whole(0, MAX_PAGE)] = None
    page_token: str | None = None


class OldAuthenticationParams(Struct, rename="camel"):
    schemes: Schemes
    credentials: Credentials | None = None


_WITHOUT_SCHEME: Json = {"credentials": {"type": "string", "minLength": 1}, "schemes": {"maxItems": 0}}
_NEEDS_SCHEME = rule(**{"not": {"type": "object", "required": ["credentials"], "properties": _WITHOUT_SCHEME}})


class OldConfigParams(Struct, rename="camel"):
    url: Url
    id: ConfigId | None = None
    token: Header | None = None
    authentication: Annotated[OldAuthenticationParams | None, _NEEDS_SCHEME] = None


class SetParams(Struct, rename="camel"):
    push_notification_config: OldConfigParams
    task_id: str | None = None
    metadata: Json | None = None


class OldConfigIdParams(Struct, rename="camel"):
    id: str | None = None
    task_id: str | None = None
    push_notification_config_id: str | None = None
    metadata: Json | None = None


_TEXT: Json = {"type": "string", "minLength": 1}
SET = Annotated[SetParams, rule(required=["taskId"], properties={"taskId": _TEXT})]
OF_TASK = Annotated[OldConfigIdParams, NAMES_TASK]
OF_CONFIG = Annotated[
    OldConfigIdParams,
    NAMES_TASK,
    rule(required=["pushNotificationConfigId"], properties={"pushNotificationConfigId": _TEXT}),
]


# -------------------------------------------------------------------- checks


def require(value: str | None, field: str) -> str:
    """Return a text that must not be empty. Raises InvalidParams."""
    if not value:
        raise InvalidParams((field, "is required" if value is None else "must not be empty"))
    return value


def config_of(wire: Json, path: str, *, schemes: dict[str, str], credentials: str | None) -> PushConfig:
    """Return a webhook whose fields have the right form. `schemes` has each scheme by its path in the params.

    Raises InvalidParams for a field that is too long or not safe in a header.
    """
    field = f"{path}authentication.credentials"
    config_id = wire.get("id") or None
    if config_id is not None:
        _check_id(config_id, f"{path}id")
    url = require(wire["url"], f"{path}url")
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
        check_secret(credentials or "", field)
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


def check_secret(secret: str, field: str) -> None:
    """Raise InvalidParams for text that is not a signing secret of Standard Webhooks."""
    try:
        size = len(b64decode(secret.removeprefix("whsec_"), validate=True)) if secret.startswith("whsec_") else 0
    except (binascii.Error, ValueError):
        size = 0
    if size not in _SECRET_BYTES:
        raise InvalidParams((field, "must be a secret of Standard Webhooks: whsec_ and the base64 of 24 to 64 bytes"))
