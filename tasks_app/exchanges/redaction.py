"""Redaction of bodies before they are stored. One scan for a few short words spares most bodies the walk."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import orjson
from django.conf import settings

from a2a.errors import InvalidParams
from a2a.params import read_base64
from tasks_app.masking import MASK, is_secret, is_secret_name, mask_values, site
from tasks_app.off_loop import rest

# A text that is not JSON cannot be walked. It is cut after the first such name, and to TEXT_BYTES. A quote may stand in
# place of a colon that is missing.
_IN_TEXT = re.compile(r"([\w-]{1,96}+)[\"']?\s{0,9}[:=\"']")
TEXT_BYTES = 4_096
# Most bodies contain none of these. A backslash may hide a letter of a name.
_HINTS = (
    *("auth", "pass", "secret", "key", "credential", "cookie", "pwd", "jwt", 'otp"', "\\u"),
    *("eyj", "tdk_", "whsec_", "k_live_", "glpat-", "github_pat_", "xox", "akia", "aiza", "bearer"),
    *("tda_", "tdo_", "tdr_", "tds_"),
)
_GITHUB_PREFIXES = ("ghp_", "gho_", "ghr_", "ghs_", "ghu_")
_QUERY_NAMES = ("sig=", "signature=")
_SK = re.compile(r"(?<![\w-])sk-[\w-]{16}", re.ASCII)
"""A key that begins with sk-, but not the end of `task-`, which is in every second id."""
# A hint of a user in a URL, whose slashes PHP escapes. To walk each body with an @ would cost too much, because every
# mail address has one. masking.py finds where the user begins and ends.
_USER = re.compile(r":(?:\\?/){2}[^\s/?#\"]+@", re.ASCII)
_WEBHOOK = b"ushNotificationConfig"
"""A part of the names of webhook methods and members in every version."""
WINDOW = 16_384
"""Characters that are searched at a time. Python keeps its interpreter lock during each search, and a search of a
megabyte for one word would delay all other threads for a millisecond."""
OVERLAP = 32
"""Characters that a window has in common with the next one: more than the longest word that is searched for."""
_BIG = 4_096
"""Bodies below this size contain no file that is large enough to replace."""
# A file is base64, with slashes that PHP escapes. No other character may stand before its closing quote.
_FILE = re.compile(rb'"(raw|bytes|fileWithBytes)"\s{0,9}:\s{0,9}"((?:[A-Za-z0-9+/_=-]++|\\/)*+)"')
_LINK_NAMES = {b"raw": b"url", b"bytes": b"uri", b"fileWithBytes": b"fileWithUri"}


def unload_files(body: bytes) -> bytes:
    """Replace large files by links with their size and digest. Their bytes are stored elsewhere."""
    return body if len(body) < _BIG else _FILE.sub(_link, body)


def _link(match: re.Match[bytes]) -> bytes:
    if len(match[2]) <= settings.A2A_INLINE_BYTES:
        return match[0]
    member = _LINK_NAMES[match[1]]
    try:
        content = read_base64(match[2].replace(b"\\/", b"/").decode(), "")
    except InvalidParams:
        content = match[2]
    digest = hashlib.sha256(content).hexdigest()
    return b'"%s":"digest:sha256=%s;bytes=%d"' % (member, digest.encode(), len(content))


def redact(body: bytes, *, webhooks: bool = False) -> str:
    """Return the body without secrets, as text that any database accepts.

    Bytes that are not UTF-8 are replaced. In a body about webhooks, or with a webhook, addresses are cut to their
    sites.
    """
    if webhooks or _WEBHOOK in body:
        return _clean(_mask(body, webhooks=webhooks or _names_webhook_method(body)))
    text = body.decode("utf-8", "replace")
    return _clean(_mask(body) if _may_hold_secret(text) else text)


def _windows(text: str) -> Iterator[str]:
    """Yield the text in lower case, in windows that are searched in a moment each. Every short word of the text is
    whole in a window."""
    for place in range(0, len(text), WINDOW):
        yield text[place : place + WINDOW + OVERLAP].lower()
        rest()


def _may_hold_secret(text: str) -> bool:
    return any(map(_window_may_hold_secret, _windows(text))) or ("@" in text and _USER.search(text) is not None)


def _window_may_hold_secret(lower: str) -> bool:
    # A search for short words takes a third of the time in text that it takes in bytes.
    for hint in _HINTS:
        if hint in lower:
            return True
    # Every list has a page token, which is not a secret.
    if "token" in lower and lower.count("token") > lower.count("pagetoken"):
        return True
    if "gh" in lower and any(hint in lower for hint in _GITHUB_PREFIXES):
        return True
    if "=" in lower and any(hint in lower for hint in _QUERY_NAMES):
        return True
    return "sk-" in lower and _SK.search(lower) is not None


def _names_webhook_method(body: bytes) -> bool:
    """Return whether the body is a call of a method for webhooks."""
    return re.search(rb'"method"\s{0,9}:\s{0,9}"[A-Za-z/]{0,64}ushNotificationConfig', body) is not None


def _mask(body: bytes, *, webhooks: bool = False) -> str:
    try:
        # The parser keeps only the last of several members with one name. The text is made of what was walked.
        return orjson.dumps(_walk(orjson.loads(body), webhooks)).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        # Not JSON, or nested too deeply: orjson reads 1,024 levels, and writes 254.
        return mask_values(_cut(body[:TEXT_BYTES].decode("utf-8", "replace")))


def _cut(text: str) -> str:
    """Return the beginning of a text that is not JSON, up to its first secret."""
    for match in _IN_TEXT.finditer(text):
        if is_secret_name(match[1]):
            return f"{text[: match.end()]} {MASK}"
    return text


def _walk(value: Any, webhook: bool = False) -> Any:
    """Return the value without secrets, and with the sites of webhooks in place of their addresses.

    The parser has limited the depth.
    """
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
