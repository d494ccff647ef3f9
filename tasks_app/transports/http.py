"""The shared part of the HTTP doors: calls from requests, refusals before the envelope is read, headers of answers."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from a2a.choice import Endpoint
from a2a.documents import Encoded, Pieces
from a2a.envelopes import bare
from a2a.errors import Error, InvalidKey, InvalidRequest, MissingScope, RateLimited, Unauthenticated, Unavailable
from a2a.language import Language
from a2a.sse import last_seen
from tasks_app.callers.peers import is_forwarded, origin_in, peer_of, trace_of
from tasks_app.callers.schemes import evidence_in
from tasks_app.cards.addresses import address_of, is_secure
from tasks_app.database.waits import CallerLeft
from tasks_app.exchanges.exchange import BARE
from tasks_app.exchanges.refusals import close_refused
from tasks_app.limits.rate_limits import limits
from tasks_app.masking import mask_id
from tasks_app.transports.call import REQUEST_ID, Call, early_failure
from tasks_app.transports.challenges import challenge
from tasks_app.transports.faults import fault_with

Response = TypeVar("Response", bound=HttpResponseBase)
WIDEST = "A2A_BODY_BYTES"
"""The setting with the limit of bodies at all endpoints."""
MIN_LIMIT = 1_000
"""The smallest value that a limit of bodies may have."""
OF_BODIES = frozenset({405, 408, 413, 415})
"""Statuses of refusals that do not depend on the caller."""
FIRST_LINE = 256
"""Characters of a request's verb and path that are recorded with a refusal."""


class Refusal(Exception):
    """A refusal of a request before its envelope is read."""

    def __init__(self, status: int, detail: str, *, allow: str = "POST", error: Error | None = None) -> None:
        super().__init__(detail or str(error))
        self.status = status
        self.allow = allow
        """The verbs of the path, for a 405."""
        self.error = error or InvalidRequest(detail=detail)


def body_of(request: HttpRequest, endpoint: Endpoint) -> bytes:
    """Return the body of a POST of JSON within the limit of the endpoint. Raises Refusal: 405, 415, 413."""
    if request.method != "POST":
        raise Refusal(405, f"use POST, not {request.method}")
    kind = (request.content_type or "").lower()
    if not kind.endswith("json"):
        raise wrong_type(kind)
    return read(request, endpoint.body_setting)


def wrong_type(kind: str) -> Refusal:
    """Return the refusal of a media type."""
    fault = f"not {kind[:64]}" if kind else "and the request has none"
    return Refusal(415, f"the Content-Type must be application/json, {fault}")


def refusal_of_encoding(meta: Mapping[str, Any]) -> Refusal | None:
    """Return the refusal of a compressed body; None for any other. The headers are named as in WSGI."""
    is_plain = meta.get("HTTP_CONTENT_ENCODING", "identity") == "identity"
    return None if is_plain else Refusal(415, "the body must not be compressed")


def read(request: HttpRequest, setting: str = WIDEST) -> bytes:
    """Return the body within the limit of a setting, whatever its media type. Raises Refusal: 415, 413."""
    if refusal := refusal_of_encoding(request.META):
        raise refusal
    try:
        body = request.body
    except RequestDataTooBig:
        raise too_large() from None
    if limit := exceeded(body, setting):
        raise too_large(limit)
    return body


def exceeded(body: bytes, setting: str) -> int | None:
    """Return the limit of a setting that a body exceeds; None for one within it."""
    # Reading a setting takes time. A body below MIN_LIMIT is within the limit, whatever it is.
    if len(body) <= MIN_LIMIT:
        return None
    limit: int = min(settings.A2A_BODY_BYTES, getattr(settings, setting))
    return limit if len(body) > limit else None


def too_large(limit: int | None = None) -> Refusal:
    """Return the refusal of a body beyond a limit, by default that of all endpoints."""
    return Refusal(413, f"the body must have {limit or settings.A2A_BODY_BYTES} bytes at most")


def over_limit(error: RateLimited | Unavailable) -> Refusal:
    """Return the refusal of a request beyond a limit of its owner (429), or of all owners (503)."""
    return Refusal(429 if isinstance(error, RateLimited) else 503, "", error=error)


def find_origin(request: HttpRequest) -> str:
    """Return the address for limits of strangers; empty if it is not known."""
    return origin_in(request.META)


def request_id_of(request: HttpRequest) -> str:
    """Return the caller's own X-Request-ID, if it consists of harmless characters."""
    return request_id_in(request.META)


def request_id_in(meta: Mapping[str, Any]) -> str:
    """Return the caller's own X-Request-ID from headers that are named as in WSGI; empty without a harmless one.

    A key in its place is not harmless, because records and answers have the id.
    """
    value: str = meta.get("HTTP_X_REQUEST_ID", "")
    return value if value and REQUEST_ID.fullmatch(value) and mask_id(value) == value else ""


def version_of(request: HttpRequest) -> str | None:
    """Return the A2A-Version: the header, or else the query parameter, in any case (A2A 1.0.1, 3.2.6; 3.6.1)."""
    version = request.META.get("HTTP_A2A_VERSION")
    if not version and request.META.get("QUERY_STRING"):
        # A query with too many members counts as one without a version.
        with contextlib.suppress(TooManyFieldsSent):
            version = next((value for name, value in request.GET.items() if name.lower() == "a2a-version"), None)
    return version or None


def header_of(meta: Mapping[str, Any], name: str) -> str | None:
    """Return a header by its name."""
    value: str | None = meta.get(_key_of(name))
    return value


@lru_cache(maxsize=256)
def _key_of(name: str) -> str:
    """Return the name of a header as in WSGI."""
    return f"HTTP_{name.upper().replace('-', '_')}"


def call_of(request: HttpRequest, endpoint: Endpoint, agent: str | None = None) -> Call:
    """Return the call of a request."""
    meta = request.META
    return Call(
        endpoint=endpoint,
        door=door_of(endpoint),
        evidence=evidence_in(meta),
        metadata=partial(header_of, meta),
        address=partial(address_of, request),
        is_secure=partial(is_secure, request),
        version=version_of(request),
        agent=agent,
        after=partial(last_seen, meta.get("HTTP_LAST_EVENT_ID")),
        departure=getattr(request, "departure", None),  # Set by the lean handler. Django's own cannot notice it.
        connection=getattr(request, "connection", None),
        has_status=True,
        peer=peer_of(request),
        is_forwarded=is_forwarded(meta),
        request_id=request_id_of(request),
        trace=trace_of(request),
    )


def door_of(endpoint: Endpoint) -> str:
    """Return the name of the HTTP door of an endpoint. Calls without an envelope have a door of their own."""
    return BARE if endpoint.envelope.name == bare.ENVELOPE.name else "http"


class LargeResponse(HttpResponse):
    """A response whose body is in pieces, which are sent one after the other."""

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
    payload: Encoded,
    request_id: str,
    status: int = 200,
    media: str = "application/json",
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """Return the response with an answer and its further headers."""
    if isinstance(payload, Pieces):
        response: HttpResponse = LargeResponse(payload, status=status, content_type=media)
    else:
        response = HttpResponse(payload, status=status, content_type=media)
    # Django would check each character of each header. These headers are ours, and the server refuses line breaks.
    store = response.headers._store
    for name, value in headers_of(request_id, headers).items():
        store[name.lower()] = (name, value)
    return response


def headers_of(request_id: str, further: dict[str, str] | None) -> dict[str, str]:
    """Return the headers of an answer in JSON."""
    own = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Request-ID": request_id}
    if further:
        own |= further
    return own


def add_headers(request: HttpRequest, response: HttpResponse, error: Error) -> None:
    """Add the headers for an error: WWW-Authenticate and Retry-After."""
    if isinstance(error, Unauthenticated):
        # A request without evidence is told no error (RFC 6750, 3.1).
        response["WWW-Authenticate"] = challenge(
            request.path_info, "invalid_token" if isinstance(error, InvalidKey) else ""
        )
    if isinstance(error, MissingScope) and response.status_code == 403:
        # A token that does not enable access is answered with a challenge, too (RFC 6750, 3).
        response["WWW-Authenticate"] = challenge(request.path_info, "insufficient_scope", error.facts["required"])
    if isinstance(error, RateLimited | Unavailable):
        response["Retry-After"] = str(error.retry_after)


def add_limits(response: Response, call: Call) -> Response:
    """Add the headers about the rate limits of the caller, if there are any."""
    if call.identity is not None:
        response.fields = limits.fields(call.identity)  # type: ignore[attr-defined]  # read by asgi/handler.py
    return response


def fault_of_key(cause: Exception, subject: str = "a body of this size") -> Refusal:
    """Return the refusal of a request whose caller is not known: its key is not valid, its address has reached a limit,
    or the database is away.

    `subject` is what the key is for.
    """
    if isinstance(cause, Unauthenticated):
        return Refusal(401, f"{subject} needs a key", error=cause)
    if isinstance(cause, RateLimited | Unavailable):
        return over_limit(cause)
    error = fault_with("the key of a request could not be looked up", cause, secrets.token_hex(6))
    return Refusal(503 if isinstance(error, Unavailable) else 500, "", error=error)


def line_of(request: HttpRequest) -> bytes:
    """Return the verb and the path of a request, without its query, which may have secrets."""
    return f"{request.method} {request.path}"[:FIRST_LINE].encode("utf-8", "replace")


async def refuse_call(request: HttpRequest, refusal: Refusal, endpoint: Endpoint) -> HttpResponse:
    """Answer a request as refuse() does, in the language that its key is pinned to if that language answers early."""
    call = call_of(request, endpoint)
    # Without a caller the refusal stays what it is.
    with contextlib.suppress(Error, CallerLeft, DatabaseError, InterfaceError):
        if call.evidence is not None and refusal.status in OF_BODIES:
            call.connection = None  # A request that is refused by its head makes no connection a known one.
            await call.identify()
            return refuse(request, refusal, endpoint, language=endpoint.early((), call.caller.language))
    return refuse(request, refusal, endpoint)


def refuse(
    request: HttpRequest,
    refusal: Refusal,
    endpoint: Endpoint,
    door: str | None = None,
    language: Language | None = None,
) -> HttpResponse:
    """Answer a request that is refused before its envelope is read. Only its verb and path are recorded.

    `door` is the name of the door if it is not one of HTTP. The answer is neutral if the language is None.
    """
    call = call_of(request, endpoint)
    call.door = door or call.door
    wrapping, exchange = call.wrap(None), call.open(None, b"")
    failure = early_failure(exchange, wrapping, refusal.error, language, refusal.status)
    exchange.set_request(line_of(request))
    exchange.row.rpc_id_type = "absent"
    exchange.row.request_bytes = _length_of(request)
    exchange.keep(failure.payload)
    exchange.end("refused", failure.payload, code=failure.code, status=failure.status)
    close_refused(exchange, failure.status)
    response = answer(failure.payload, exchange.request_id, failure.status, wrapping.media)
    add_headers(request, response, refusal.error)
    if refusal.status == 405:
        response["Allow"] = refusal.allow
    return response


def _length_of(request: HttpRequest) -> int:
    """Return the Content-Length; 0 if it is absent or no number."""
    length: str = request.META.get("CONTENT_LENGTH", "")
    return min(int(length), 2**31 - 1) if length.isascii() and length.isdigit() and len(length) < 12 else 0
