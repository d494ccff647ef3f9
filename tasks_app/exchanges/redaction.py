"""Secrets are taken out of bodies before they are stored. One scan for a few short words; no hit, no work."""

import hashlib
import re
from typing import Any

import orjson
from django.conf import settings

from a2a.dialects.params import read_base64
from a2a.errors import InvalidParams
from tasks_app.masking import MASK, is_secret, is_secret_name, mask_values, site

# What is not JSON cannot be walked: everything after such a name goes, and no more than this is kept.
_IN_TEXT = re.compile(r"([\w-]{1,96}+)[\"']?\s{0,9}[:=]")
TEXT_BYTES = 4_096
# Most bodies hold none of these. A backslash may hide a letter of a name.
_HINTS = (
    *("auth", "pass", "secret", "key", "credential", "cookie", "pwd", "jwt", 'otp"', "\\u"),
    *("eyj", "tdk_", "whsec_", "k_live_", "glpat-", "github_pat_", "xox", "akia", "aiza", "bearer"),
)
_OF_GITHUB = ("ghp_", "gho_", "ghr_", "ghs_", "ghu_")
_OF_QUERIES = ("sig=", "signature=")
_SK = re.compile(r"(?<![\w-])sk-[\w-]{16}", re.ASCII)
"""Not the end of `task-`, which stands in every second id."""
# An @ alone is in every second mail: to walk for it costs all of them.
_USER = re.compile(r":(?:\\?/){2}[^\s/?#\"]+@", re.ASCII)
_WEBHOOK = b"ushNotificationConfig"
"""A part of the names of webhook methods and members in every version."""
_BIG = 4_096
"""Bodies below this hold no file that is worth looking for."""
# A piece is base64 or an escaped slash, as PHP writes it: nothing else may stand before the quote that ends it.
_FILE = re.compile(rb'"(raw|bytes|fileWithBytes)"\s{0,9}:\s{0,9}"((?:[A-Za-z0-9+/_=-]++|\\/)*+)"')


_LINKED = {b"raw": b"url", b"bytes": b"uri", b"fileWithBytes": b"fileWithUri"}


def without_files(body: bytes) -> bytes:
    """The body with the size and digest of large files in their place, as links: their bytes are kept elsewhere."""
    return body if len(body) < _BIG else _FILE.sub(_marker, body)


def _marker(found: re.Match[bytes]) -> bytes:
    if len(found[2]) <= settings.A2A_INLINE_BYTES:
        return found[0]
    member = _LINKED[found[1]]
    try:
        content = read_base64(found[2].replace(b"\\/", b"/").decode(), "")
    except InvalidParams:
        content = found[2]
    digest = hashlib.sha256(content).hexdigest()
    return b'"%s":"digest:sha256=%s;bytes=%d"' % (member, digest.encode(), len(content))


def redacted(body: bytes, *, webhooks: bool = False) -> str:
    """The body as text that any database takes, without secrets. What is not UTF-8 is replaced. Of a body that is
    about webhooks, or has one, the addresses are cut to their sites."""
    if webhooks or _WEBHOOK in body:
        return _clean(_masked(body, webhooks=webhooks or _names_webhook_method(body)))
    text = body.decode("utf-8", "replace")
    return _clean(_masked(body) if _may_hold_secret(text) else text)


def _may_hold_secret(text: str) -> bool:
    # Short words are found in text in a third of the time that it takes in bytes.
    lower = text.lower()
    for hint in _HINTS:
        if hint in lower:
            return True
    # Every list has a page token, and it is no secret.
    if "token" in lower and lower.count("token") > lower.count("pagetoken"):
        return True
    if "gh" in lower and any(hint in lower for hint in _OF_GITHUB):
        return True
    if "=" in lower and any(hint in lower for hint in _OF_QUERIES):
        return True
    if "sk-" in lower and _SK.search(text):
        return True
    return "@" in text and _USER.search(text) is not None


def _names_webhook_method(body: bytes) -> bool:
    """Tell whether the body is a call of a method that is about webhooks alone."""
    return re.search(rb'"method"\s{0,9}:\s{0,9}"[A-Za-z/]{0,64}ushNotificationConfig', body) is not None


def _masked(body: bytes, *, webhooks: bool = False) -> str:
    try:
        # Of a member that is there twice the parser has seen the last only: what was walked is what is kept.
        return orjson.dumps(_walk(orjson.loads(body), webhooks)).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        # No JSON, or so deep that it is refused: orjson reads 1,024 levels, and writes 254.
        return mask_values(_cut(body[:TEXT_BYTES].decode("utf-8", "replace")))


def _cut(text: str) -> str:
    """Return a text that is no JSON up to its first secret."""
    for found in _IN_TEXT.finditer(text):
        if is_secret_name(found[1]):
            return f"{text[: found.end()]} {MASK}"
    return text


def _walk(value: Any, webhook: bool = False) -> Any:
    """Return the value without secrets, and the addresses of webhooks as their sites. The parser has bounded its
    depth."""
    if isinstance(value, dict):
        return {name: _member(name, child, webhook) for name, child in value.items()}
    if isinstance(value, list):
        return [_walk(child, webhook) for child in value]
    return mask_values(value) if isinstance(value, str) else value


def _member(name: str, value: Any, webhook: bool) -> Any:
    if is_secret(name, value):
        return MASK
    if webhook and name == "url" and isinstance(value, str):
        return site(value)
    return _walk(value, webhook or name.endswith(("ushNotificationConfig", "ush_notification_config")))


def _clean(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
