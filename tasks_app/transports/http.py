"""The HTTP doors: the call that a request is, refusals before the RPC layer, and the headers of answers."""

import contextlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse

from a2a.choice import Endpoint
from a2a.documents import Encoded, Pieces
from a2a.envelopes import bare
from a2a.errors import Error, InvalidKey, InvalidRequest, RateLimited, Unauthenticated, Unavailable
from a2a.sse import last_seen
from tasks_app.callers.peers import peer_of
from tasks_app.cards.addresses import address_of
from tasks_app.exchanges.exchange import BARE
from tasks_app.exchanges.recording import recorder
from tasks_app.transports.call import Call, fault_with

CHALLENGE = 'Bearer realm="taskdesk"'
INVALID = f'{CHALLENGE}, error="invalid_token"'
"""The challenge to a request with a key; one without any is told of no error (RFC 6750, 3.1)."""
MIN_LIMIT = 1_000
FIRST_LINE = 256
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class Refusal(Exception):
    """The call does not reach the RPC layer."""

    def __init__(self, status: int, detail: str, *, allow: str = "POST", error: Error | None = None) -> None:
        super().__init__(detail or str(error))
        self.status = status
        self.allow = allow
        """The verbs that may be used, for a 405."""
        self.error = error or InvalidRequest(detail=detail)


def body_of(request: HttpRequest) -> bytes:
    """The body of a POST of JSON within the limit. Raises Refusal: 405, 415, 413."""
    if request.method != "POST":
        raise Refusal(405, f"use POST, not {request.method}")
    kind = (request.content_type or "").lower()
    if not kind.endswith("json"):
        raise wrong_type(kind)
    return read(request)


def wrong_type(kind: str) -> Refusal:
    return Refusal(415, f"the Content-Type must be application/json, not {kind[:64] or 'absent'}")


def read(request: HttpRequest) -> bytes:
    """The body as it is, within the limit. Raises Refusal: 415, 413."""
    if request.META.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        raise Refusal(415, "the body must not be compressed")
    try:
        body = request.body
    except RequestDataTooBig:
        raise too_large() from None
    # The smallest limit that can be set spares most calls the look at the settings.
    if len(body) > MIN_LIMIT and len(body) > settings.A2A_BODY_BYTES:
        raise too_large()
    return body


def too_large() -> Refusal:
    return Refusal(413, f"the body must have {settings.A2A_BODY_BYTES} bytes at most")


def key_of(request: HttpRequest) -> str:
    """The API key of `Authorization: Bearer` or `X-API-Key`."""
    scheme, _, value = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() == "bearer":
        return str(value.strip())
    return str(request.META.get("HTTP_X_API_KEY", "").strip())


def request_id_of(request: HttpRequest) -> str:
    """The caller's own X-Request-ID, if it is harmless."""
    given: str = request.META.get("HTTP_X_REQUEST_ID", "")
    return given if given and _REQUEST_ID.fullmatch(given) else ""


def trace_of(request: HttpRequest) -> str:
    """The trace id of a traceparent header (W3C Trace Context)."""
    found = _TRACE.fullmatch(request.META.get("HTTP_TRACEPARENT", ""))
    return found[1] if found else ""


def version_of(request: HttpRequest) -> str | None:
    """A2A-Version: the header, else the query parameter, in any case (A2A 1.0.1, 3.2.6; 3.6.1)."""
    version = request.META.get("HTTP_A2A_VERSION")
    if not version and request.META.get("QUERY_STRING"):
        # A query of a thousand members names no version.
        with contextlib.suppress(TooManyFieldsSent):
            version = next((value for name, value in request.GET.items() if name.lower() == "a2a-version"), None)
    return version or None


def header_of(meta: Mapping[str, Any], name: str) -> str | None:
    """Return a header by its name."""
    value: str | None = meta.get(f"HTTP_{name.upper().replace('-', '_')}")
    return value


def call_of(request: HttpRequest, endpoint: Endpoint, agent: str | None = None) -> Call:
    """Return the call that a request is."""
    meta = request.META
    return Call(
        endpoint=endpoint,
        door=door_of(endpoint),
        key=key_of(request),
        metadata=partial(header_of, meta),
        address=partial(address_of, request),
        version=version_of(request),
        agent=agent,
        after=last_seen(meta.get("HTTP_LAST_EVENT_ID")),
        departure=getattr(request, "departure", None),  # The lean handler knows; Django's own does not.
        has_status=True,
        peer=peer_of(request),
        request_id=request_id_of(request),
        trace=trace_of(request),
    )


def door_of(endpoint: Endpoint) -> str:
    """Return the name of the HTTP door to an endpoint: calls without an envelope have one of their own."""
    return BARE if endpoint.envelope.name == bare.ENVELOPE.name else "http"


class LargeResponse(HttpResponse):
    """A response whose body is in pieces, to be sent one after the other."""

    parts: Sequence[bytes] = ()

    def __init__(self, pieces: Pieces, **more: Any) -> None:
        super().__init__(**more)
        self.parts = pieces.parts

    @property
    def content(self) -> bytes:
        """The body as a whole."""
        return b"".join(self.parts)

    @content.setter
    def content(self, value: bytes) -> None:
        self.parts = [value]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)


def answer(
    payload: Encoded, request_id: str, status: int = 200, media: str = "application/json",
    headers: dict[str, str] | None = None,
) -> HttpResponse:  # fmt: skip
    """An answer to a call, with what further headers it has."""
    if isinstance(payload, Pieces):
        response: HttpResponse = LargeResponse(payload, status=status, content_type=media)
    else:
        response = HttpResponse(payload, status=status, content_type=media)
    # Django looks at each character of each header. These are our own, and the server refuses a line break in any.
    store = response.headers._store
    for name, value in headers_of(request_id, headers).items():
        store[name.lower()] = (name, value)
    return response


def headers_of(request_id: str, more: dict[str, str] | None) -> dict[str, str]:
    """Return the headers of an answer that is JSON, early or whole."""
    own = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-ID": request_id}
    if more:
        own |= more
    return own


def add_headers(response: HttpResponse, error: Error) -> None:
    """Add the headers that HTTP has for an error."""
    if isinstance(error, Unauthenticated):
        response["WWW-Authenticate"] = INVALID if isinstance(error, InvalidKey) else CHALLENGE
    if isinstance(error, RateLimited | Unavailable):
        response["Retry-After"] = str(error.retry_after)


def fault_of_key(cause: Exception) -> Refusal:
    """Return how a call is refused whose caller cannot be found out: it has no good key, or the database is away."""
    if isinstance(cause, Unauthenticated):
        return Refusal(401, "a body of this size needs a key", error=cause)
    error = fault_with("the key of a request could not be looked up", cause, secrets.token_hex(6))
    return Refusal(503 if isinstance(error, Unavailable) else 500, "", error=error)


def refuse(request: HttpRequest, refusal: Refusal, endpoint: Endpoint) -> HttpResponse:
    """Answer a call that does not reach the RPC layer; recorded without its content, but for its first line."""
    call = call_of(request, endpoint)
    wrapping, exchange = call.wrap(None), call.open(None, b"")
    failure = wrapping.failure(refusal.error, None, refusal.status)
    exchange.set_request(f"{request.method} {request.path}"[:FIRST_LINE].encode("utf-8", "replace"))
    exchange.row.rpc_id_type = "absent"
    exchange.row.request_bytes = _declared(request)
    exchange.keep(failure.payload)
    exchange.end("refused", failure.payload, code=failure.code, status=failure.status)
    recorder.close(exchange)
    response = answer(failure.payload, exchange.request_id, failure.status, wrapping.media)
    add_headers(response, refusal.error)
    if refusal.status == 405:
        response["Allow"] = refusal.allow
    return response


def _declared(request: HttpRequest) -> int:
    length: str = request.META.get("CONTENT_LENGTH", "")
    return min(int(length), 2**31 - 1) if length.isascii() and length.isdigit() and len(length) < 12 else 0
