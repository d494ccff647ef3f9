"""Resources for which a client may ask a token (RFC 8707): this server, or one of its agents."""

import re
from urllib.parse import urlsplit

_AGENT = re.compile(r"/agents/([-a-zA-Z0-9_]+)(?:/.*)?")
_ROOT = re.compile(r"/?|/[A-Za-z0-9._~:/-]*")


def agent_of(resource: str, address: str) -> str | None:
    """Return the name of the agent that the resource is; None for the whole server.

    Raises ValueError for an address that is not ours.
    """
    rest = resource.removeprefix(address)
    if not address or rest == resource or len(resource) > 512:
        raise ValueError(f"the resource must begin with {address}")
    if match := _AGENT.fullmatch(rest):
        return match[1]
    if not _ROOT.fullmatch(rest):
        raise ValueError("the resource must be an address of this server, without a query or a fragment")
    return None


def agents_of(resources: list[str]) -> frozenset[str] | None:
    """Return the agents that a token is limited to, by the resources that are stored with it; None for no limit."""
    matches = [re.search(r"/agents/([-a-zA-Z0-9_]+)(?:/|\Z)", urlsplit(resource).path) for resource in resources]
    return frozenset(match[1] for match in matches if match) if matches and all(matches) else None
