"""The first segments of all our paths: names that no tenant may have, and the paths that the lean handler serves."""

from a2a.languages import ALL, Languages
from tasks_app.callers.wrong_values import WrongValue

OAUTH, STATIC = "oauth2", "static"
STOCK = frozenset({"admin", "api", "desk", OAUTH, STATIC})
"""Paths of pages for people and of the operators' API, which Django's own handler serves."""
HEALTH = frozenset({"health", "healthz", "metrics", "readyz"})
"""Paths for operators alone."""
_PAGES = ".well-known agent agents card files openapi.json openrpc.json schemas"
SIGNED = frozenset({"slack"})
"""Paths whose calls are proved by a signature of the body, which is therefore read before the caller is known."""
_DOORS = "links slack stream ws"
_OTHERS = HEALTH.union(f"{_PAGES} {_DOORS}".split())
"""Paths of the protocol that belong to no endpoint."""


def words_of(languages: Languages) -> frozenset[str]:
    """Return the first segments of routes at the root, before which a tenant may stand."""
    return frozenset[str]().union(
        *(endpoint.segments for endpoint in languages.endpoints.values() if endpoint.routes and "" in endpoint.paths)
    )


def segments_of(languages: Languages) -> frozenset[str]:
    """Return the first segments of the protocol's paths in all languages."""
    return _OTHERS.union(*(endpoint.segments for endpoint in languages.endpoints.values()))


WORDS = words_of(ALL)
LEAN = segments_of(ALL)
_SECOND = WORDS | {"ws"}
RESERVED = STOCK | LEAN
_DOTS = frozenset({"", ".", ".."})
"""Segments that clients and proxies take out of a path (RFC 3986, 5.2.4)."""
_CUTS = frozenset("?#%\\")
"""Characters that end a path, or that clients change, where a name stands in it as it is."""


def is_lean(path: str) -> bool:
    """Return whether the path belongs to the protocol, by its first segment, or by the second after a tenant or an
    agent."""
    first, _, rest = path[1:].partition("/")
    return first in LEAN or (first not in STOCK and rest.partition("/")[0] in _SECOND)


def _first(path: str) -> str:
    return path[1:].partition("/")[0]


def is_signed(path: str) -> bool:
    """Return whether the path is one of SIGNED."""
    return _first(path) in SIGNED


def is_oauth(path: str) -> bool:
    """Return whether the path belongs to the OAuth server."""
    return _first(path) == OAUTH


def is_static(path: str) -> bool:
    """Return whether the path is that of a file that pages load."""
    return _first(path) == STATIC


def is_health(path: str) -> bool:
    """Return whether the path is one of HEALTH."""
    return _first(path) in HEALTH


def check_tenant_name(name: str) -> None:
    """Check that a tenant's name can be the first segment of a path (docs/protocol.md#tenants). Raises ValueError."""
    if name in RESERVED or "/" in name:
        raise WrongValue(
            "tenant", f"a tenant cannot be called {name!r}: its paths would be mistaken for others; choose another"
        )
    if name in _DOTS or not _CUTS.isdisjoint(name) or not name.isprintable() or name != name.strip():
        raise WrongValue(
            "tenant",
            f"a tenant cannot be called {name!r}: a path cannot hold that as it is; choose a name without ?, #, %, \\ "
            "and control characters, without spaces at its ends, that is not empty, . or ..",
        )
