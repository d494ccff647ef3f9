"""The schemes of API keys: as a bearer token, and in a header of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from a2a.errors import InvalidKey
from a2a.types import SecurityScheme
from tasks_app.callers.access import FindCaller, FindStored, digests
from tasks_app.callers.schemes import Evidence, Scheme, bearer_token
from tasks_app.database.bridge import bridge

LONGEST = 512
"""Characters of the longest key that is looked up."""


def digests_of(evidence: Evidence) -> tuple[str, ...]:
    """Return the digests under which the API key may be stored."""
    secret = evidence.secret
    return digests(secret) if isinstance(secret, str) else secret


async def prove(evidence: Evidence) -> FindCaller:
    """Return the work item that finds the caller of an API key. Raises InvalidKey."""
    if refutes(evidence):
        raise InvalidKey
    return FindCaller(digests_of(evidence))


def refutes(evidence: Evidence) -> bool:
    """Return whether a key is longer than any key."""
    return isinstance(evidence.secret, str) and len(evidence.secret) > LONGEST


async def lacks(keys: Sequence[Evidence]) -> list[bool]:
    """Return which keys are not stored. Raises errors of the database."""
    all_digests = [digests_of(key) for key in keys]
    stored = await bridge.ask(FindStored(tuple(digest for one in all_digests for digest in one)))
    return [stored.isdisjoint(one) for one in all_digests]


def _read_bearer(meta: Mapping[str, Any]) -> Evidence | None:
    token = bearer_token(meta)
    return Evidence("bearer", token) if token else None


def _read_header(meta: Mapping[str, Any]) -> Evidence | None:
    key = meta.get("HTTP_X_API_KEY", "").strip()
    return Evidence("key", key) if key else None


BEARER = Scheme(
    name="bearer",
    method="api_key",
    cards=lambda: {"bearer": SecurityScheme(http_scheme="Bearer", description="An API key as a bearer token")},
    credential="an API key",
    place="Authorization: Bearer",
    challenge="Bearer",
    read=_read_bearer,
    prove=prove,
    refutes=refutes,
    lacks=lacks,
)
HEADER = Scheme(
    name="key",
    method="api_key",
    cards=lambda: {"key": SecurityScheme(header="X-API-Key", description="An API key in a header")},
    credential="an API key",
    place="X-API-Key",
    substitute="X-API-Key",
    read=_read_header,
    prove=prove,
    refutes=refutes,
    lacks=lacks,
)
