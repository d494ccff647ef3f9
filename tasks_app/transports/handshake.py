"""The handshake of a WebSocket connection: a request of HTTP that names the agent and the caller of all its calls."""

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse

from a2a import languages
from a2a.agents import registry
from a2a.errors import RateLimited, Unauthenticated, Unavailable
from tasks_app.callers.accounts import Holding, account
from tasks_app.callers.paths import RESERVED
from tasks_app.cards.addresses import address_of
from tasks_app.transports.call import Call
from tasks_app.transports.frames import adapt
from tasks_app.transports.http import Refusal, call_of, fault_of_key, over_limit, refuse

DOOR = "websocket"
ENDPOINT = languages.ALL.endpoints["rpc"]
"""The endpoint whose languages are spoken in frames."""
PROTOCOL = "a2a"
"""The sub-protocol of the frames."""
BEARER = "bearer."
"""The beginning of a sub-protocol that carries an API key, in base64url without padding. It is never sent back."""
_SCHEMES = {"ws": "http", "wss": "https"}


class Opening(NamedTuple):
    """An accepted handshake."""

    call: Call
    """The call that all calls of the connection are made from."""
    holding: Holding
    """The connection in the account of its owner."""
    protocol: str | None
    """The sub-protocol to answer with."""


def request_of(scope: Mapping[str, Any]) -> HttpRequest:
    """Return the handshake as a request of HTTP."""
    plain = {**scope, "type": "http", "method": "GET", "scheme": _SCHEMES.get(scope.get("scheme", "ws"), "http")}
    return ASGIRequest(plain, BytesIO())


async def open_socket(request: HttpRequest, protocols: Sequence[str]) -> Opening:
    """Return the opening of a connection whose path, origin and key are good. Raises Refusal."""
    agent = _agent_of(request.path_info)
    _check_origin(request)
    call = call_of(request, ENDPOINT, agent)
    address = address_of(request)
    call.door, call.has_status, call.adapt, call.address = DOOR, False, adapt, lambda: address
    call.key = call.key or _key_in(protocols)
    # Each call has an id and a position of its own.
    call.request_id, call.after = "", None
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        raise fault_of_key(error, "a WebSocket connection") from None
    if agent is not None and registry.get(agent) is None:
        raise Refusal(404, f"there is no agent {agent[:64]!r}; GET /agents/ lists the agents")
    return Opening(call, _hold(call.caller.owner_id), PROTOCOL if PROTOCOL in protocols else None)


def encode_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """Record a refused handshake, and return its answer, which is one of HTTP."""
    return refuse(request, refusal, ENDPOINT, DOOR)


def _agent_of(path: str) -> str | None:
    """Return the agent in a path; None for /ws itself. Raises Refusal: 404."""
    match path.strip("/").split("/"):
        case ["ws"]:
            return None
        case ["agents", name, "ws"]:
            return name
        case [name, "ws"] if name not in RESERVED:
            return name
    raise Refusal(404, "sockets are at /ws, /agents/{name}/ws and /{agent}/ws")


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


def _key_in(protocols: Sequence[str]) -> str:
    """Return the API key in a sub-protocol; empty without one. Raises Refusal: 401."""
    encoded = next((name.removeprefix(BEARER) for name in protocols if name.startswith(BEARER)), "")
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:  # of base64, of ASCII before it, or of UTF-8 after it
        raise fault_of_key(Unauthenticated(), "a WebSocket connection") from None


def _hold(owner_id: int) -> Holding:
    """Take a connection from the account of its owner. Raises Refusal: 429, 503."""
    try:
        return account.hold(owner_id, "sockets")
    except (RateLimited, Unavailable) as error:
        raise over_limit(error) from None
