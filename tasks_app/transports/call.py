"""A call as a door hands it in, whatever carried it, and the reply that the door carries back.

A door builds a Call and gives it to receiving.receive(), or to handling.handle(). It sends the Reply in its own frames.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError
from msgspec import Struct, UnsetType

from a2a.choice import Endpoint
from a2a.documents import Encoded
from a2a.envelopes import Id, Wrapping, wrap
from a2a.errors import Error, Internal, Unavailable
from tasks_app.callers.access import Caller
from tasks_app.callers.accounts import Holding
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.transports.keys import authenticate

if TYPE_CHECKING:
    from tasks_app.transports.streams import Stream
    from tasks_app.transports.waiting import LateAnswer

log = logging.getLogger(__name__)
SMALL = 16_384
"""Bytes of a body that are read of any sender. Before more is read, the caller must be known."""


class Call(Struct, kw_only=True):
    """A call before its body is read; the members of a batch share it."""

    endpoint: Endpoint
    door: str
    """The name of the door, as shown to operators."""
    key: str
    """The API key that came with it; empty without one."""
    metadata: Callable[[str], str | None]
    """Returns a header, or what the door has in its place, by the name that it has in HTTP."""
    address: Callable[[], str]
    """Returns the base URL at which the server was reached; empty if that must not be told."""
    version: str | None = None
    """The A2A-Version that it names."""
    agent: str | None = None
    """The agent that its address names."""
    after: int | None = None
    """The last event that the caller has seen."""
    left: Callable[[], Awaitable[None]] | None = None
    """Ends when the caller has left; None where the door cannot tell."""
    has_status: bool = False
    """The door tells each caller an HTTP status."""
    batch: bool = False
    """It is one of the members of a batch."""
    peer: str | None = None
    request_id: str = ""
    """The caller's own id of the call."""
    trace: str = ""
    identity: Caller | None = None
    """Who calls, once that is known."""

    @property
    def caller(self) -> Caller:
        """Who calls. Raises TypeError before identify()."""
        if self.identity is None:
            raise TypeError("a call is performed for a caller: identify() comes first")
        return self.identity

    async def identify(self) -> None:
        """Look up who calls. Raises Unauthenticated, InvalidKey and Left, and errors of the database."""
        if self.identity is None:
            self.identity = await authenticate(self.key, self.left)

    def wrap(self, rpc_id: Id | UnsetType) -> Wrapping:
        """Return the envelope of the call, or of one of its members."""
        return wrap(self.endpoint.envelope, rpc_id, self.endpoint.neutral)

    def open(self, rpc_id: Id | UnsetType, body: bytes) -> OpenExchange:
        """Return a new exchange of the call, or of one of its members."""
        exchange = OpenExchange(
            door=self.door,
            envelope=self.endpoint.envelope.name,
            request_id=self.request_id,
            rpc_id=rpc_id,
            request=body,
            trace=self.trace,
            has_status=self.has_status,
        )
        exchange.row.peer = self.peer
        exchange.row.version = (self.version or "")[:32].replace("\0", "")
        return exchange


class Reply(Struct, kw_only=True):
    """An answer, a stream, an answer that is long in coming, or (to a notification) nothing."""

    request_id: str
    wrapping: Wrapping
    payload: Encoded | None = None
    stream: "Stream | None" = None
    late: "LateAnswer | None" = None
    error: Error | None = None
    """The error that the payload tells."""
    status: int = 200
    error_as_stream: bool = False
    """The error may be expected as the one event of a stream."""
    holding: Holding | None = None
    """The bytes of a large payload, in the account of the caller until it is sent."""
    headers: dict[str, str] = {}
    """Headers of this answer: its version, and the extensions that it was made with."""

    def release(self) -> None:
        """Take a large payload out of the account of its caller. A door does this when it is sent, or cannot be."""
        if self.holding:
            self.holding.release()


def fault(exchange: OpenExchange, cause: Exception) -> Error:
    """Return the error that a caller gets for a fault; log the cause. A database that is away may be back soon.

    The reference is the id of the exchange, by which operators find the call.
    """
    return fault_with(f"exchange {exchange.row.id} failed", cause, exchange.row.id)


def fault_with(what: str, cause: Exception, reference: str) -> Error:
    """Return the error for a fault with this reference; log the cause."""
    log.error("%s, reference %s", what, reference, exc_info=cause)
    if isinstance(cause, OperationalError | InterfaceError):
        return Unavailable(reference=reference)
    return Internal(reference=reference)
