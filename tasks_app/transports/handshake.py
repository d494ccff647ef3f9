"""The handshake of a WebSocket connection: a request of HTTP that names the agent and the caller of all its calls."""

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import MutableMapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse

from a2a import languages
from a2a.agents import registry
from a2a.errors import InvalidTicket, RateLimited, Unauthenticated, Unavailable, UnknownAgent
from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers import tickets
from tasks_app.callers.access import Caller, FindCaller
from tasks_app.callers.credentials import decode
from tasks_app.callers.kinds import is_accepted
from tasks_app.callers.paths import RESERVED
from tasks_app.callers.permissions import may_see
from tasks_app.callers.schemes import Evidence, credentials, evidence_in
from tasks_app.cards.addresses import address_of, is_secure
from tasks_app.limits import strangers
from tasks_app.limits.accounts import Holding, account
from tasks_app.transports.call import Call
from tasks_app.transports.frames import adapt
from tasks_app.transports.http import Refusal, call_of, fault_of_key, over_limit, refuse
from tasks_app.transports.http_requests import Request
from tasks_app.transports.keys import Proof

DOOR = "websocket"
ENDPOINT = languages.ALL.endpoints["rpc"]
"""The endpoint whose languages are spoken in frames."""
PROTOCOL = "a2a"
"""The sub-protocol of the frames."""
TICKET = "ticket"
"""The parameter of the query with a ticket."""
SUBJECT = "a WebSocket connection"
BEARER = "bearer."
"""The beginning of a sub-protocol that carries an API key, in base64url without padding. It is never sent back."""
NO_KEY = "A browser, which sends no such header, uses a sub-protocol or a ticket (docs/websocket.md)"
NOT_ENCODED = f"what follows {BEARER} in the sub-protocol is not a key in base64url"
_SCHEMES = {"ws": "http", "wss": "https"}


class Opening(NamedTuple):
    """An accepted handshake."""

    call: Call
    """The call that all calls of the connection are made from."""
    holding: Holding
    """The connection in the account of its owner."""
    protocol: str | None
    """The sub-protocol to answer with."""


def request_of(scope: MutableMapping[str, Any]) -> HttpRequest:
    """Return the handshake as a request of HTTP. The scope loses its query: servers log it, and a ticket may be in
    it."""
    plain = {**scope, "type": "http", "method": "GET", "scheme": _SCHEMES.get(scope.get("scheme", "ws"), "http")}
    scope["query_string"] = b""
    return Request(plain, BytesIO())


async def open_socket(request: HttpRequest, protocols: Sequence[str]) -> Opening:
    """Return the opening of a connection whose path, origin and key are good. Raises Refusal."""
    agent = agent_of(request.path_info)
    _check_origin(request)
    call = call_of(request, ENDPOINT, agent)
    address = address_of(request)
    secure = is_secure(request)
    call.door, call.has_status, call.adapt, call.address = DOOR, False, adapt, lambda: address
    call.on_socket = True
    call.is_secure = lambda: secure
    call.evidence = call.evidence or _evidence_in(request, protocols)
    ticket = _ticket_of(request, has_key=call.evidence is not None)
    if ticket is None and call.evidence is None:
        raise fault_of_key(Unauthenticated(f"{credentials()}. {NO_KEY}"), SUBJECT)
    # Each call has an id and a position of its own.
    call.request_id, call.after = "", lambda: None
    try:
        if ticket is not None:
            call.proof = await _find_holder(call, ticket)
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        raise fault_of_key(error, SUBJECT) from None
    check_agent(call.caller, agent)
    opening = Opening(call, _hold(call), PROTOCOL if PROTOCOL in protocols else None)
    if ticket is not None:
        await _use_up(ticket, opening.holding)
    return opening


def encode_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Record a refused handshake, and return its answer, which is one of HTTP."""
    return refuse(request, refusal, ENDPOINT, DOOR)


def agent_of(path: str) -> str | None:
    """Return the agent in a path; None for /ws itself. Raises Refusal: 404."""
    match path.strip("/").split("/"):
        case ["ws"]:
            return None
        case ["agents", name, "ws"]:
            return name
        case [name, "ws"] if name not in RESERVED:
            return name
    raise Refusal(404, "sockets are at /ws, /agents/{name}/ws and /{agent}/ws")


def check_agent(caller: Caller, name: str | None) -> None:
    """Check that there is an agent of the name for the caller, if there is a name. Raises Refusal: 404."""
    if name is not None and (registry.get(name) is None or not may_see(caller, name)):
        raise Refusal(404, "", error=UnknownAgent(agent=name[:64]))


def _check_origin(request: HttpRequest) -> None:
    """Check that a page in a browser may open the connection. Programs send no Origin (RFC 6455, 10.2).

    Raises Refusal: 403.
    """
    origin: str | None = request.META.get("HTTP_ORIGIN")
    if origin is None or not {origin, "*"}.isdisjoint(settings.A2A_CORS_ORIGINS):
        return
    own = urlsplit(address_of(request))
    if not own.netloc or origin != f"{own.scheme}://{own.netloc}":
        raise Refusal(403, "pages of this origin may not open sockets here; A2A_CORS_ORIGINS lists further origins")


def _evidence_in(request: HttpRequest, protocols: Sequence[str]) -> Evidence | None:
    """Return the evidence with a bearer token in a sub-protocol; None without one. Raises Refusal: 401."""
    encoded = next((name.removeprefix(BEARER) for name in protocols if name.startswith(BEARER)), "")
    try:
        token = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:  # of base64, of ASCII before it, or of UTF-8 after it
        raise fault_of_key(Unauthenticated(credentials(), detail=NOT_ENCODED), SUBJECT) from None
    return evidence_in({**request.META, "HTTP_AUTHORIZATION": f"Bearer {token}"}) if token else None


def _ticket_of(request: HttpRequest, *, has_key: bool) -> str | None:
    """Return the ticket in the query; None without one. Raises Refusal: 400."""
    try:
        values = request.GET.getlist(TICKET)
    except TooManyFieldsSent:
        return None
    if len(values) + has_key > 1:
        raise Refusal(400, "send a key or one ticket, and not both: they may be of two callers")
    return values[0] if values else None


async def _find_holder(call: Call, ticket: str) -> Proof:
    """Return the proof of the caller of a ticket. Raises InvalidTicket, TooManyCalls and errors of the database."""
    strangers.check_failures(call.origin())
    try:
        holder = await tickets.find_key(ticket)
        if holder[0].startswith("{"):
            return decode(holder[0])
        if not is_accepted("key"):
            raise InvalidTicket
        return FindCaller(holder)
    except InvalidTicket:
        strangers.count_failure(call.origin())
        raise


async def _use_up(ticket: str, holding: Holding) -> None:
    """Use the ticket up, as the last step, so that a refused handshake leaves it as it is. Raises Refusal: 401, 503."""
    try:
        await tickets.use_up(ticket)
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        holding.release()
        raise fault_of_key(error, SUBJECT) from None
    except asyncio.CancelledError:
        holding.release()
        raise


def _hold(call: Call) -> Holding:
    """Take a connection from the account of its owner. Raises Refusal: 429, 503."""
    try:
        return account.hold(call.caller.owner_id, "sockets")
    except (RateLimited, Unavailable) as error:
        refused_calls.count(call.caller, error.reason, call.peer)
        raise over_limit(error) from None
