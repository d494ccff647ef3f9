"""The first segments of all our paths: names that no tenant may have, and the paths that the lean handler serves."""

from a2a.languages import WORDS

STOCK = frozenset({"admin", "static", "desk", "oauth2", "slack"})
"""Paths of pages for people, which Django's own handler serves."""
_PROTOCOL = ".well-known a2a agent agents card files health healthz invoke jsonrpc metrics negotiate readyz rpc v1 ws"
LEAN = WORDS | {"", *_PROTOCOL.split()}
"""Paths of the protocol in all languages, future ones included."""
RESERVED = STOCK | LEAN


def is_lean(path: str) -> bool:
    """Return whether the path belongs to the protocol, by its first segment, or by the second after a tenant."""
    first, _, rest = path[1:].partition("/")
    return first in LEAN or (first not in STOCK and rest.partition("/")[0] in WORDS)


def check_tenant_name(name: str) -> None:
    """Check that a tenant's name can be the first segment of a path (docs/protocol.md#tenants). Raises ValueError."""
    if name in RESERVED or "/" in name:
        raise ValueError(f"a tenant cannot be called {name!r}: its paths would be mistaken for others; choose another")
