"""Calls from pages of other origins (CORS, the Fetch standard, 3.3).

This application is in front of the handler of the protocol's paths. So it answers preflights before a body is read, and
adds its headers to every answer of these paths: streams, 304, and the refusals before a view is called.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from a2a import languages
from a2a.extensions import HEADER, OLD_HEADER
from a2a.language import VERSION_HEADER
from a2a.money import HEADER as BUDGET_HEADER
from tasks_app.callers.paths import is_health
from tasks_app.transports.origins import Headers, Origins, origin_in

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
METHODS = sorted(
    {"GET", "HEAD", "POST"} | {route.verb for endpoint in languages.ALL.endpoints.values() for route in endpoint.routes}
)
"""The methods that a page may use."""
REQUEST_HEADERS = (
    *("Authorization", "X-API-Key", "Content-Type", VERSION_HEADER, HEADER, OLD_HEADER, "Last-Event-ID"),
    BUDGET_HEADER,
    *("X-Request-ID", "traceparent", "If-None-Match", "If-Modified-Since", "Range", "If-Range"),
    *("Cache-Control", "tracestate", "baggage"),
)
"""Headers that a page may send: those that this server reads, and in the last line those that libraries add unasked."""
MAX_AGE = 7_200
"""Seconds for which a browser may cache a preflight. Chromium caches none for longer."""
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", ", ".join(METHODS).encode()),
    (b"access-control-allow-headers", ", ".join(REQUEST_HEADERS).encode()),
    (b"access-control-max-age", str(MAX_AGE).encode()),
]
_REFUSAL = b"pages of this origin may not call this server; A2A_CORS_ORIGINS lists the origins whose pages may\n"


class Cors:
    """Lets the pages of listed origins call the protocol's paths."""

    def __init__(self, app: App, listed: Sequence[str]) -> None:
        self.app = app
        self.origins = Origins(listed)

    def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Awaitable[None]:
        """Answer a preflight, or pass a call on."""
        verb = scope["method"]
        if (self.origins.is_closed and verb != "OPTIONS") or is_health(scope["path"]):
            return self.app(scope, receive, send)
        origin = origin_in(scope)
        if verb == "OPTIONS" and _is_preflight(scope, origin):
            return self._answer_preflight(origin, send)
        if not self.origins.concern(verb, origin):
            return self.app(scope, receive, send)
        return self.app(scope, receive, partial(self._send, send, origin))

    def _send(self, send: Any, origin: bytes | None, message: dict[str, Any]) -> Awaitable[None]:
        """Send a message of an answer, with further headers if it is the first one."""
        if message["type"] == "http.response.start":
            message = message | {"headers": self.origins.complete(message.get("headers", []), origin)}
        sending: Awaitable[None] = send(message)
        return sending

    async def _answer_preflight(self, origin: bytes | None, send: Any) -> None:
        headers = self.origins.headers(origin)
        more = _PREFLIGHT if headers else [(b"content-type", b"text/plain; charset=utf-8")]
        fields = self.origins.vary([*headers[:1], *more])
        await send({"type": "http.response.start", "status": 204 if headers else 403, "headers": fields})
        await send({"type": "http.response.body", "body": b"" if headers else _REFUSAL})


def _is_preflight(scope: dict[str, Any], origin: bytes | None) -> bool:
    """Return whether an OPTIONS is a preflight, which has no body. One with a body is a call like others."""
    fields = dict(scope["headers"])
    has_body = b"transfer-encoding" in fields or fields.get(b"content-length", b"0") != b"0"
    return origin is not None and b"access-control-request-method" in fields and not has_body
