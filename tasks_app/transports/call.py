"""The call that a door builds, and the reply that it sends, whatever carries them.

A door gives its Call to receiving.receive(), or to handling.handle(), and sends the Reply in its own frames.
"""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from django.conf import settings
from msgspec import Struct, UnsetType

from a2a.choice import Endpoint
from a2a.documents import Encoded
from a2a.envelopes import AnyMember, Failure, Id, Wrapping, wrap
from a2a.errors import Error, InvalidKey
from a2a.language import Language, Spelling
from a2a.params import write_time
from tasks_app import clock
from tasks_app.audit.refused_calls import OTHER_NETWORK, refused_calls
from tasks_app.callers.access import Caller
from tasks_app.callers.networks import admits
from tasks_app.callers.peers import origin_of
from tasks_app.callers.schemes import Evidence
from tasks_app.callers.scopes import Right
from tasks_app.database.errors import Busy
from tasks_app.database.waits import CallerLeft
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.limits import strangers
from tasks_app.limits.accounts import Holding
from tasks_app.limits.turns import Turn, turns
from tasks_app.masking import mask_id
from tasks_app.transports.keys import CheckAgain, Proof, authenticate, check_again, find_again
from tasks_app.transports.streams import Stream
from tasks_app.transports.waiting import LateAnswer

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
"""The form of a caller's own id of a call."""
SMALL = 16_384
"""The largest body that is read before its caller is authenticated."""
STREAM = "text/event-stream"
"""The media type of streams over HTTP."""


class Call(Struct, kw_only=True):
    """A call before its body is read. The members of a batch share it."""

    endpoint: Endpoint
    door: str
    """The name of the door, which operators see."""
    evidence: Evidence | None
    """The API key, token or certificate of the call; None without any."""
    metadata: Callable[[str], str | None]
    """Returns a header by its name in HTTP, or the equivalent of the door."""
    address: Callable[[], str]
    """Returns the base URL to which the call was sent; empty if that is not an address of ours."""
    is_secure: Callable[[], bool] = lambda: True
    """Returns whether the call came over TLS, or by a door that no network reaches."""
    version: str | None = None
    """The A2A-Version of the call."""
    agent: str | None = None
    """The agent in the address of the call."""
    after: Callable[[], int | None] = lambda: None
    """Returns the sequence number of the last event that the caller has seen. Raises InvalidRequest. Only streams ask
    for it."""
    adapt: Callable[["Call", AnyMember], "Call"] | None = None
    """Returns the call with the service parameters in the member itself, if the door allows them there. Raises
    InvalidRequest."""
    departure: Callable[[], Awaitable[None]] | None = None
    """Ends when the caller leaves. It is None if the door cannot notice that."""
    connection: Any = None
    """The connection of our own server, which notes that its caller is known; None at other doors."""
    has_status: bool = False
    """Whether each call of the door is answered with an HTTP status."""
    on_socket: bool = False
    """Whether the door can send a stream after any answer."""
    batch: bool = False
    """Whether the call is a member of a batch."""
    peer: str | None = None
    """The network address that the call came from."""
    is_forwarded: bool = False
    """Whether the call says that a proxy has forwarded it."""
    request_id: str = ""
    """The caller's own id of the call."""
    trace: str = ""
    """The trace id of the call (W3C Trace Context)."""
    identity: Caller | None = None
    """The caller, after identify()."""
    proof: Proof | None = None
    """Finds the caller again, after identify(). A call without evidence may have it before."""
    until: float | None = None
    """The time at which its stream ends, in seconds since 1970; None for a call without such a time."""
    turn: Turn | None = None
    """The turn of the call, if the door has waited for it."""
    no_turn: Busy | CallerLeft | None = None
    """The error of a door that has waited for it in vain."""
    no_caller: Exception | None = None
    """The error of a door that has looked for the caller in vain."""

    @property
    def caller(self) -> Caller:
        """The caller. Raises TypeError before identify()."""
        if self.identity is None:
            raise TypeError("a call has no caller before identify()")
        return self.identity

    @property
    def takes_stream(self) -> bool:
        """Whether the caller takes a stream in place of an answer, where a method has both."""
        return not self.batch and (self.on_socket or STREAM in (self.metadata("Accept") or ""))

    def find_again(self) -> Proof:
        """Return the work item that finds the caller again; its result is None when the evidence is not valid any more.

        Raises TypeError before identify().
        """
        if self.proof is None:
            raise TypeError("a call has no proof of its caller before identify()")
        return self.proof

    def check_again(self, right: Right, spelling: Spelling) -> CheckAgain:
        """Return the check whether the caller still has the right of the call. Raises TypeError before identify()."""
        return partial(check_again, self.find_again(), self.caller.owner_id, right, spelling)

    async def identify(self) -> None:
        """Find the caller. Raises Unauthenticated, InvalidKey, TooManyCalls and CallerLeft, and errors of the
        database."""
        if self.no_caller is not None:
            raise self.no_caller
        if self.identity is None:
            if settings.A2A_ADDRESS_CALLS:
                strangers.check_calls(self.origin())
            if self.evidence is None and self.proof is not None:
                recognition = await find_again(self.proof, self.departure)
            else:
                recognition = await authenticate(self.evidence, self.origin, self.departure)
            self._check_place(recognition.caller)
            self.identity, self.proof = recognition.caller, recognition.proof
            if self.connection is not None:
                self.connection.is_known = True

    def _check_place(self, caller: Caller) -> None:
        """Check that the credential is valid in the network and at the address of the call. Raises InvalidKey and
        TooManyCalls.

        It counts like a wrong one. Otherwise a flood would show which of the keys in it are valid elsewhere.
        """
        is_elsewhere = not admits(caller.networks, self.peer)
        if is_elsewhere:
            refused_calls.count(caller, OTHER_NETWORK, self.peer)
        if is_elsewhere or not self.is_for(caller):
            strangers.count_failure(self.origin())
            raise InvalidKey

    def is_for(self, caller: Caller) -> bool:
        """Return whether the credential of the caller is valid at the address of the call."""
        return caller.agents is None or self.agent in caller.agents

    def origin(self) -> str:
        """Return the address for limits of strangers; empty if it is not known."""
        return origin_of(self.peer, forwarded=self.is_forwarded)

    async def take_turn(self) -> Turn:
        """Return the turn of the call among those of its owner, which the taker ends. Raises Busy and CallerLeft, and
        TypeError before identify()."""
        if self.no_turn is not None:
            raise self.no_turn
        return self.turn or await turns.take(self.caller.owner_id, self.departure)

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
        exchange.row.version = mask_id(self.version or "", 32).replace("\0", "")
        return exchange


class Reply(Struct, kw_only=True):
    """The reply to a call: an answer, a stream, a late answer, or nothing for a notification."""

    request_id: str
    wrapping: Wrapping
    payload: Encoded | None = None
    stream: Stream | None = None
    late: LateAnswer | None = None
    error: Error | None = None
    """The error in the payload."""
    status: int = 200
    error_as_stream: bool = False
    """Whether clients of the language may expect the error as the only event of a stream."""
    holding: Holding | None = None
    """The bytes of the payload in the account of the caller, if they count."""
    headers: dict[str, str] = {}
    """The headers with the version of the answer and the extensions that were activated for it."""

    def release(self) -> None:
        """Take the payload out of the account. A door calls this once the payload is sent, or cannot be sent."""
        if self.holding:
            self.holding.release()
        if self.late:
            self.late.release()


def date(error: Error) -> None:
    """Add the time of day to the facts of an error."""
    error.facts["timestamp"] = write_time(clock.now())


def early_failure(
    exchange: OpenExchange, wrapping: Wrapping, error: Error, language: Language | None, status: int | None = None
) -> Failure:
    """Encode an error that comes before a call is read, in the neutral language if the language is None."""
    if language is not None:
        exchange.row.dialect = language.name
        if language.dates_errors:
            date(error)
    return wrapping.failure(error, language, status)
