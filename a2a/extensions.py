"""Protocol extensions: the URIs that a call requests, and those that it activates (docs/protocol.md#extensions)."""

import re
from collections.abc import Iterable

from a2a.errors import ExtensionSupportRequired, InvalidRequest
from a2a.types import Extension

HEADER = "A2A-Extensions"
OLD_HEADER = "X-A2A-Extensions"
"""The spelling of 0.x; callers may use either."""
MAX_ASKED = 100
MAX_CHARACTERS = 8_192
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[!#-+\--;=?-\[\]_a-z~]{1,2000}")


def is_uri(value: object) -> bool:
    """Return whether an agent may declare the URI: absolute, and safe in a header and in a comma-separated list."""
    return isinstance(value, str) and _URI.fullmatch(value) is not None


def asked(*headers: str) -> tuple[str, ...]:
    """Return the URIs of the headers, in order, without duplicates. Raises InvalidRequest above the limits."""
    if sum(map(len, headers)) > MAX_CHARACTERS:
        raise InvalidRequest(detail=f"{HEADER} may have {MAX_CHARACTERS} characters at most")
    found = dict.fromkeys(uri.strip() for header in headers for uri in header.split(","))
    found.pop("", None)
    if len(found) > MAX_ASKED:
        raise InvalidRequest(detail=f"{HEADER} may name {MAX_ASKED} extensions at most")
    return tuple(found)


def activated(declared: Iterable[Extension], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the URIs of declared extensions that a call activates. Raises ExtensionSupportRequired."""
    found = []
    missing = []
    for extension in declared:
        if extension.uri in wanted:
            found.append(extension.uri)
        elif extension.required:
            missing.append(extension.uri)
    if missing:
        raise ExtensionSupportRequired(extension=", ".join(missing), header=HEADER)
    return tuple(found)
