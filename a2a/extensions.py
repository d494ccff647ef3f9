"""Protocol extensions: the URIs that a call requests, and those that it activates (docs/protocol.md#extensions)."""

import re
from collections.abc import Iterable

from a2a.errors import ExtensionSupportRequired, InvalidRequest
from a2a.types import Extension

HEADER = "A2A-Extensions"
OLD_HEADER = "X-A2A-Extensions"
"""The spelling of A2A 0.x. Callers of any version may use either."""
MAX_URIS = 100
"""URIs that one call may request."""
MAX_CHARACTERS = 8_192
"""Characters of a call's extension headers, together."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[!#-+\--;=?-\[\]_a-z~]{1,2000}")


def is_uri(value: object) -> bool:
    """Return whether an agent may declare the URI: absolute, and safe in a header and in a comma-separated list."""
    return isinstance(value, str) and _URI.fullmatch(value) is not None


def read_uris(*headers: str) -> tuple[str, ...]:
    """Return the URIs of the headers, in order, without duplicates.

    Raises InvalidRequest above MAX_URIS or MAX_CHARACTERS.
    """
    if sum(map(len, headers)) > MAX_CHARACTERS:
        raise InvalidRequest(detail=f"{HEADER} may have {MAX_CHARACTERS} characters at most")
    uris = dict.fromkeys(uri.strip() for header in headers for uri in header.split(","))
    uris.pop("", None)
    if len(uris) > MAX_URIS:
        raise InvalidRequest(detail=f"{HEADER} may name {MAX_URIS} extensions at most")
    return tuple(uris)


def activate(extensions: Iterable[Extension], uris: tuple[str, ...]) -> tuple[str, ...]:
    """Return the URIs of the agent's extensions that a call requests, in the agent's order.

    URIs that the agent does not declare are ignored. Raises ExtensionSupportRequired if the call does not request a
    required extension (A2A 1.0, 3.3.4).
    """
    active = []
    missing = []
    for extension in extensions:
        if extension.uri in uris:
            active.append(extension.uri)
        elif extension.required:
            missing.append(extension.uri)
    if missing:
        listed = ", ".join(missing)
        detail = f"request {listed} in the header {HEADER}"
        raise ExtensionSupportRequired(extension=listed, header=HEADER, detail=detail)
    return tuple(active)
