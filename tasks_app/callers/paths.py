"""The first segments of our paths, once: what no tenant can be called, and which of them the lean handler serves."""

from a2a.languages import WORDS

STOCK = frozenset({"admin", "static", "desk", "oauth2", "slack"})
"""Pages for people: Django's own handler."""
LEAN = WORDS | {
    "", ".well-known", "a2a", "agent", "agents", "card", "files", "health", "healthz", "invoke", "jsonrpc", "metrics",
    "negotiate", "readyz", "rpc", "v1", "ws",
}  # fmt: skip
"""The protocol, in all its dialects, those to come included."""
RESERVED = STOCK | LEAN


def is_lean(path: str) -> bool:
    """Whether the path belongs to the protocol: by its first segment, or by the second after a tenant."""
    first, _, rest = path[1:].partition("/")
    return first in LEAN or (first not in STOCK and rest.partition("/")[0] in WORDS)


def check_tenant_name(name: str) -> None:
    """Raises ValueError for a name that cannot be a segment of a path before all others (docs/protocol.md#tenants)."""
    if name in RESERVED or "/" in name:
        raise ValueError(f"a tenant cannot be called {name!r}: it would be taken for another path")
