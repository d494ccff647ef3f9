"""The shared part of all HTTP doors: who calls, refusals before the RPC layer, and the headers of answers."""

import contextlib
import logging
import re
import secrets
import time
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse

from a2a.errors import Error, Internal, InvalidKey, InvalidRequest, RateLimited, Unauthenticated, Unavailable
from a2a.extensions import asked
from a2a.files import MARK
from tasks_app.callers.access import Caller, FindCaller, digests
from tasks_app.callers.peers import peer_of
from tasks_app.cards.addresses import address_of
from tasks_app.database.bridge import bridge
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.transports.wrapping import Wrapping, in_envelope

log = logging.getLogger(__name__)
CHALLENGE = 'Bearer realm="taskdesk"'
INVALID = f'{CHALLENGE}, error="invalid_token"'
"""The challenge to a request with a key; one without any is told of no error (RFC 6750, 3.1)."""
TRUSTED_SECONDS = 1.0
"""How long a key that was looked up is trusted: a revoked one works no longer than this."""
KEY_SECONDS = 15.0
"""How often it is looked whether the key of an open stream, or of a call that waits, has been revoked."""
VERSION = "A2A-Version"
"""In a call the version that is spoken (A2A 1.0.1, 14.2.1); in an answer the one that it is in."""
LONGEST_KEY = 512
MAX_CACHED = 10_000
MIN_LIMIT = 1_000
FIRST_LINE = 256
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class Unfinished(Exception):
    """An answer whose headers are out cannot be completed, and its client must be able to see that."""


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


_cache: dict[str, tuple[float, Caller]] = {}


async def authenticate(request: HttpRequest) -> Caller:
    """The caller behind the request's API key. Raises Unauthenticated and InvalidKey."""
    key = key_of(request)
    if not key:
        raise Unauthenticated
    if len(key) > LONGEST_KEY:
        raise InvalidKey
    now = time.monotonic()
    known = _cache.get(key)
    if known is not None and known[0] > now:
        return known[1]
    caller: Caller | None = await bridge.ask(FindCaller(digests(key)), left=getattr(request, "left", None))
    if caller is None:
        raise InvalidKey
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    _cache[key] = (now + TRUSTED_SECONDS, caller)
    return caller


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


def extensions_of(request: HttpRequest) -> tuple[str, ...]:
    """The extensions that the call asks for, in either spelling of the header. Raises InvalidRequest."""
    meta = request.META
    new, old = meta.get("HTTP_A2A_EXTENSIONS"), meta.get("HTTP_X_A2A_EXTENSIONS")
    return asked(new or "", old or "") if new or old else ()


def exchange_of(request: HttpRequest, rpc_id: Any, body: bytes, door: str = "http") -> OpenExchange:
    """A new exchange of this HTTP call."""
    exchange = OpenExchange(
        door=door, request_id=request_id_of(request), rpc_id=rpc_id, request=body, trace=trace_of(request)
    )
    exchange.row.peer = peer_of(request)
    exchange.row.version = (version_of(request) or "")[:32].replace("\0", "")
    return exchange


def linked(payload: bytes, request: HttpRequest) -> bytes:
    """An answer whose files are links."""
    return with_links(payload, address_of(request)) if MARK in payload else payload


def answer(
    payload: bytes, request_id: str, status: int = 200, media: str = "application/json",
    headers: dict[str, str] | None = None,
) -> HttpResponse:  # fmt: skip
    """An answer to a call, with what further headers it has."""
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


def error_answer(
    error: Error, payload: bytes, request_id: str, status: int, media: str, headers: dict[str, str] | None = None
) -> HttpResponse:
    """An error, with the headers it has in HTTP."""
    response = answer(payload, request_id, status, media, headers)
    add_headers(response, error)
    return response


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
    error = _fault("the key of a request could not be looked up", cause, secrets.token_hex(6))
    return Refusal(503 if isinstance(error, Unavailable) else 500, "", error=error)


def fault(exchange: OpenExchange, cause: Exception) -> Error:
    """Return what a caller is told of a fault; log the cause. A database that is away may be back soon.

    The reference is the id of the exchange, by which operators find the call.
    """
    return _fault(f"exchange {exchange.row.id} failed", cause, exchange.row.id)


def _fault(what: str, cause: Exception, reference: str) -> Error:
    log.error("%s, reference %s", what, reference, exc_info=cause)
    if isinstance(cause, OperationalError | InterfaceError):
        return Unavailable(reference=reference)
    return Internal(reference=reference)


IN_ENVELOPE = in_envelope(None)


def refuse(request: HttpRequest, refusal: Refusal, wrapping: Wrapping = IN_ENVELOPE) -> HttpResponse:
    """The answer to a call that does not reach the RPC layer; recorded without its content, but for its first line."""
    said = wrapping.tell(refusal.error, None, refusal.status)
    exchange = exchange_of(request, None, b"", wrapping.door)
    exchange.asks(f"{request.method} {request.path}"[:FIRST_LINE].encode("utf-8", "replace"))
    exchange.row.rpc_id_type = "absent"
    exchange.row.request_bytes = _declared(request)
    exchange.keep(said.payload)
    exchange.end("refused", said.payload, code=said.code, status=said.status)
    recorder.close(exchange)
    response = error_answer(refusal.error, said.payload, exchange.request_id, said.status, wrapping.media)
    if refusal.status == 405:
        response["Allow"] = refusal.allow
    return response


def _declared(request: HttpRequest) -> int:
    length: str = request.META.get("CONTENT_LENGTH", "")
    return min(int(length), 2**31 - 1) if length.isascii() and length.isdigit() and len(length) < 12 else 0
