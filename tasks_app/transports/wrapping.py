"""The wrapping that a door puts around a dialect's answer: the JSON-RPC envelope, or nothing but HTTP."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a import jsonrpc, rest
from a2a.dialects import neutral
from a2a.errors import Error, InvalidKey, MissingScope, RateLimited, Unauthenticated, Unavailable
from a2a.language import Dialect
from tasks_app.exchanges.exchange import BARE

STATUSES: dict[type[Error], int] = {
    kind: rest.status_of(kind())[0] for kind in (Unauthenticated, InvalidKey, MissingScope, RateLimited, Unavailable)
}
"""Errors that HTTP has a status for, in single calls of JSON-RPC; all others are a 200 (docs/protocol.md#envelope)."""


class Told(NamedTuple):
    """An error in the words of a door."""

    payload: bytes
    code: int
    """The dialect's."""
    status: int


class Wrapping(Struct, frozen=True, kw_only=True):
    """The wrapping of one call."""

    door: str
    """The name of the door, as shown to operators."""
    tell: Callable[[Error, Dialect | None, int | None], Told]
    """An error, in the dialect if that is known, with the status that HTTP has for it if that is another."""
    media: str = "application/json"
    head: bytes = b""
    tail: bytes = b""
    silent: bool = False
    """A notification: the work is done, and nobody is told."""


def in_envelope(rpc_id: jsonrpc.Id | UnsetType) -> Wrapping:
    """JSON-RPC; without an id it is a notification."""
    known = None if rpc_id is UNSET else rpc_id
    return Wrapping(
        door="http",
        tell=partial(_told, known),
        head=jsonrpc.head(known),
        tail=jsonrpc.TAIL,
        silent=rpc_id is UNSET,
    )


def _told(rpc_id: jsonrpc.Id, error: Error, dialect: Dialect | None, status: int | None) -> Told:
    wire: dict[str, Any] = dialect.error(error) if dialect else neutral(error)
    return Told(jsonrpc.failure(rpc_id, wire), wire["code"], status or STATUSES.get(type(error), 200))


def bare(family: rest.Family) -> Wrapping:
    """REST."""
    return Wrapping(door=BARE, tell=partial(_told_bare, family), media=family.media)


def _told_bare(family: rest.Family, error: Error, dialect: Dialect | None, status: int | None) -> Told:
    wire = family.encode_error(error, status)
    return Told(orjson.dumps(wire), (dialect or family.main).code(error), wire["error"]["code"])
