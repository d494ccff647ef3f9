"""Secrets are taken out before anything is stored. One scan for a few short words; no hit, no work."""

import hashlib
import re
from typing import Any

import orjson
from django.conf import settings

from a2a.dialects.params import file_bytes
from a2a.errors import InvalidParams

MASK = "[redacted]"
_NAMES = (
    r"authorization|passw(?:or)?d|passphrase|(?:client_?)?secret|(?:x[-_])?api[-_]?key|credentials?|(?:set-)?cookie|"
    r"(?:bot|access|refresh|id|auth)?[-_]?token|private[-_]?key"
)
_SECRET = re.compile(rf"(?:{_NAMES})|[\w-]{{0,64}}_(?:secret|password|api_key)", re.IGNORECASE)
"""Names of members whose values are secrets; paging tokens are not."""
# Possessive and anchored at a word's beginning: a hostile text must not cost more than one pass.
_BY_VALUE = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]++|tdk_[\w-]{16,}+|whsec_[A-Za-z0-9+/=]{16,}+)"
    r"|(?<=://)[^\s/?#\"]+(?=@)"
)
# Possessive, and the name is looked at apart: to try all names at all places of a long text takes the time of others.
_IN_QUERY = re.compile(r"[?&]([\w-]{1,96}+)=(?=[^&#\s\"])")
_QUERY_VALUE = re.compile(r"[^&#\s\"]*+")
_QUERY_SECRET = re.compile(rf"(?:.*[-_])?(?:{_NAMES}|key|sig|signature)", re.IGNORECASE)
_LONGEST_NAME = 32
"""Characters that are more than any of the names has."""
# What is not JSON cannot be walked: everything after such a name goes, and no more than this is kept.
_IN_TEXT = re.compile(rf"((?:{_NAMES})[\"']?\s{{0,9}}[:=]).*", re.IGNORECASE | re.DOTALL)
TEXT_BYTES = 4_096
# Most bodies hold none of these. A backslash may hide a letter of a name.
_HINTS = tuple(
    word.encode()
    for word in (
        *("auth", "passw", "passp", "secret", "key", "credential", "cookie", "token"),
        *("eyj", "tdk_", "whsec_", "\\u", "sig=", "signature="),
    )
)
# As in _BY_VALUE, in the bytes of JSON. An @ alone is in every second mail: to walk for it costs all of them.
_USER = re.compile(rb":(?:\\?/){2}[^\s/?#\"]+@")
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
        content = file_bytes(found[2].replace(b"\\/", b"/").decode(), "")
    except InvalidParams:
        content = found[2]
    digest = hashlib.sha256(content).hexdigest()
    return b'"%s":"digest:sha256=%s;bytes=%d"' % (member, digest.encode(), len(content))


def redacted(body: bytes) -> str:
    """The body as text that any database takes, without secrets. What is not UTF-8 is replaced."""
    lower = body.lower()
    if b"pagetoken" in lower:
        # Every list has one, and it is no secret.
        lower = lower.replace(b"pagetoken", b"")
    for hint in _HINTS:
        if hint in lower:
            return _clean(_masked(body))
    if b"@" in body and _USER.search(body):
        return _clean(_masked(body))
    return _clean(body.decode("utf-8", "replace"))


def _masked(body: bytes) -> str:
    try:
        # Of a member that is there twice the parser has seen the last only: what was walked is what is kept.
        return orjson.dumps(_walk(orjson.loads(body))).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        # No JSON, or so deep that it is refused: orjson reads 1,024 levels, and writes 254.
        text = _IN_TEXT.sub(rf"\1 {MASK}", body[:TEXT_BYTES].decode("utf-8", "replace"))
        return _by_value(text)


def _walk(value: Any) -> Any:
    """Return the value without secrets. The parser has bounded its depth."""
    if isinstance(value, dict):
        return {name: MASK if _is_secret(name, child) else _walk(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_walk(child) for child in value]
    return _by_value(value) if isinstance(value, str) else value


def _by_value(text: str) -> str:
    """Without what is a secret wherever it stands: keys, and what a URL says of its user and in its query."""
    return _query_masked(_BY_VALUE.sub(MASK, text))


def _query_masked(text: str) -> str:
    """Without the values of secret names in queries; a query may stand in the value of another."""
    parts, place = [], 0
    for found in _IN_QUERY.finditer(text):
        if found.start() >= place and _QUERY_SECRET.fullmatch(found[1][-_LONGEST_NAME:]):
            parts += [text[place : found.end()], MASK]
            value = _QUERY_VALUE.match(text, found.end())
            place = value.end() if value else found.end()
    return "".join(parts) + text[place:] if parts else text


def _is_secret(name: str, value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and _SECRET.fullmatch(name) is not None


def _clean(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
