"""Pages by GET that need a key, and are performed and recorded as calls: the extended card of 0.2, and descriptions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
from django.http import HttpRequest, HttpResponse
from msgspec import UNSET, Struct

from a2a.choice import Endpoint
from a2a.dialects.errors_1_0 import COLUMN
from a2a.errors import (
    Error,
    ExtendedCardNotConfigured,
    InvalidRequest,
    UnknownAgent,
    VersionNotSupported,
)
from a2a.language import Language
from a2a.requests import Request
from tasks_app.audit.refused_calls import COUNTED, refused_calls
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.rate_limits import limits
from tasks_app.operations import Context, authorize, cost_of, perform
from tasks_app.transports.call import Call
from tasks_app.transports.error_log import log_refusal
from tasks_app.transports.faults import fault
from tasks_app.transports.http import add_headers, add_limits, call_of

REFUSALS = {kind: cell.status for kind, cell in COLUMN.items() if cell.status != 200} | {
    UnknownAgent: 404,
    ExtendedCardNotConfigured: 404,
    VersionNotSupported: 400,
}
"""Statuses of errors by GET (docs/protocol.md#extended-card). Any other error is 500."""


class Body(NamedTuple):
    """The body of a page."""

    content: bytes
    etag: str = ""
    """The tag of the content; empty for a page that differs for each caller."""


class PrivatePage(Struct, frozen=True, kw_only=True):
    """A page by GET."""

    language: Language
    """The language of its errors, which is recorded."""
    method: str
    """The name that is recorded."""
    request: Callable[[Call], Request]
    encode: Callable[[Any], Body]
    """Encodes the result of the operation."""

    async def serve(self, request: HttpRequest, endpoint: Endpoint, agent: str | None) -> HttpResponse:
        """Return the page, or a refusal."""
        call = call_of(request, endpoint, agent)
        return add_limits(await self._answer(request, call), call)

    async def _answer(self, request: HttpRequest, call: Call) -> HttpResponse:
        exchange = call.open(UNSET, b"")
        exchange.row.dialect, exchange.row.method = self.language.name, self.method
        try:
            if request.method not in {"GET", "HEAD"}:
                raise InvalidRequest(detail="use GET")
            call.departure = None
            await call.identify()
            exchange.name_caller(call.caller)
            with await call.take_turn() as turn:
                exchange.set_caller(call.caller)
                wish = self.request(call)
                authorize(type(wish), call.caller)
                await limits.spend(call.caller, cost_of(type(wish)))
                context = Context(caller=call.caller, exchange=exchange, agent=call.agent, turn=turn)
                body = self.encode(await perform(wish, context))
        except Error as error:
            if call.identity is not None and isinstance(error, COUNTED):
                refused_calls.count(call.identity, error.reason, call.peer)
            return self._refuse(request, exchange, self.language.words(error))
        except Exception as error:  # noqa: BLE001  # the door's one catch; logged with its reference
            return self._refuse(request, exchange, fault(exchange, error))
        return self._respond(request, exchange, body)

    def _respond(self, request: HttpRequest, exchange: OpenExchange, body: Body) -> HttpResponse:
        is_current = bool(body.etag) and body.etag in request.META.get("HTTP_IF_NONE_MATCH", "")
        content, status = (b"", 304) if is_current else (body.content, 200)
        exchange.end("result", content, status=status)
        if body.etag:
            exchange.keep_size(len(content))
        else:
            exchange.keep(content)
        recorder.close(exchange)
        response = self._private(exchange, content, status)
        if body.etag:
            response["ETag"] = body.etag
        return response

    def _refuse(self, request: HttpRequest, exchange: OpenExchange, error: Error) -> HttpResponse:
        wire = self.language.error(error)
        content = orjson.dumps({"error": wire})
        status = 405 if isinstance(error, InvalidRequest) else REFUSALS.get(error.row, 500)
        exchange.end("refused" if status in {401, 405} else "error", content, code=wire["code"], status=status)
        log_refusal(exchange, error, status)
        exchange.keep(content)
        recorder.close(exchange)
        response = self._private(exchange, content, status)
        add_headers(request, response, error)
        if status == 405:
            response["Allow"] = "GET, HEAD"
        return response

    def _private(self, exchange: OpenExchange, content: bytes, status: int) -> HttpResponse:
        """Return a response that no shared cache may store."""
        headers = {
            "Cache-Control": "private, no-cache" if status in {200, 304} else "no-store",
            "Vary": "Authorization, X-API-Key, A2A-Version",
            "X-Content-Type-Options": "nosniff",
            "X-Request-ID": exchange.request_id,
            **self.language.headers(),
        }
        return HttpResponse(content, status=status, content_type="application/json", headers=headers)
