"""Resources for which a client may ask a token (RFC 8707): this server, or one of its agents."""

import re
from urllib.parse import urlsplit

from a2a.options import NAME
from tasks_app.cards.addresses import public

DOCUMENT = ".well-known/oauth-protected-resource"
"""The path of the metadata of a resource, before the path of the resource itself (RFC 9728, 3.1)."""
_REST = r"(?:/[A-Za-z0-9._~:/-]*)?"
_AGENT = re.compile(rf"/agents/([-a-zA-Z0-9_]+){_REST}")
_ROOT = re.compile(_REST)
_AGENTS = re.compile(r"/+agents/+[^/].*", re.IGNORECASE)
"""Paths that seem to name an agent. A token for the whole server would be more than the client asks for."""


def agent_of(resource: str, address: str) -> str | None:
    """Return the name of the agent that the resource is; None for the whole server.

    Raises ValueError for an address that is not ours.
    """
    rest = resource.removeprefix(address)
    if not address or rest == resource or len(resource) > 512:
        raise ValueError(f"the resource must begin with {address}")
    match = _AGENT.fullmatch(rest)
    if match and NAME.fullmatch(match[1]):
        return match[1]
    if not _ROOT.fullmatch(rest):
        raise ValueError("the resource must be an address of this server, without a query or a fragment")
    if match or _AGENTS.fullmatch(rest):
        raise ValueError("the resource seems to be an agent, but no agent can have this address")
    return None


def agent_path(path: str) -> str:
    """Return the address of the agent that a path of ours belongs to, without our own, such as /agents/echo; empty for
    any other path."""
    match = _AGENT.fullmatch(path)
    return f"/agents/{match[1]}" if match else ""


def document_of(path: str) -> str:
    """Return the address of the metadata of the agent that a path of ours belongs to, or else of the whole server."""
    return f"{public()}/{DOCUMENT}{agent_path(path)}"


def agents_of(resources: list[str]) -> frozenset[str] | None:
    """Return the agents that a token is limited to, by the resources that are stored with it; None for no limit."""
    matches = [re.search(r"/agents/([-a-zA-Z0-9_]+)(?:/|\Z)", urlsplit(resource).path) for resource in resources]
    return frozenset(match[1] for match in matches if match) if matches and all(matches) else None
