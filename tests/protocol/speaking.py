"""The languages of the server, by version, and the choice among those of the JSON-RPC endpoint."""

from typing import Any

import pytest

from a2a.choice import CallError
from a2a.envelopes import Member
from a2a.errors import Error, RateLimited, Unavailable
from a2a.language import Language, Method
from a2a.languages import ALL, DIALECTS, NEUTRAL

WAITS = {RateLimited: {"retryAfter": "1"}, Unavailable: {"retryAfter": "1"}}
"""The facts that an error has from its class: the seconds after which to try again."""
BY_VERSION = {dialect.version: dialect for dialect in DIALECTS}
RPC, REST, OLD_REST = (ALL.endpoints[name] for name in ("rpc", "rest", "rest-0.x"))


def member(method: str, params: Any = None) -> Member:
    return Member(id=1, method=method, params=params, source=None)


def choose(method: str, version: str | None, pin: str | None = None) -> tuple[Language, Method]:
    return RPC.choose(member(method), version, pin)


def refused(method: str, version: str | None) -> CallError:
    """Return the refusal of a call for which no language can be chosen."""
    with pytest.raises(CallError) as caught:
        choose(method, version)
    return caught.value


def neutral(error: Error) -> dict[str, Any]:
    return NEUTRAL.error(error)


def wire(refused: CallError) -> dict[str, Any]:
    """Return the error object of a refusal."""
    return (refused.language or NEUTRAL).error(refused.error)
