"""The door for REST (HTTP+JSON): the same calls without an envelope, named by verb and path.

What a path means is data of the dialects (a2a/rest.py); here the parts of an HTTP call are brought together.
"""

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from a2a.dialects import Refused
from a2a.errors import Error, InvalidParams, InvalidRequest, MethodNotFound, ParseError
from a2a.jsonrpc import holds_nul, path_of_nul, read_json
from a2a.rest import Family, Found, NoSuchVerb, check_version, find, params_of
from tasks_app.callers.access import check_scope
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import OPERATIONS
from tasks_app.transports.bodies import SMALL
from tasks_app.transports.calls import HttpCall, Understood, answered, response_to, unknown_caller, unreadable
from tasks_app.transports.compression import compressed
from tasks_app.transports.http import Refusal, authenticate, exchange_of, read, refuse, version_of, wrong_type
from tasks_app.transports.wrapping import bare

KINDS = frozenset({"application/json", "application/a2a+json"})
"""Types of a request's body (docs/protocol.md#media-types)."""

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def rest(family: Family) -> View:
    """The view of everything under a prefix. The path is what comes after it; CSRF does not apply, as no cookie is
    looked at."""
    wrapping = bare(family)

    async def view(
        request: HttpRequest, path: str, agent: str | None = None, tenant: str | None = None
    ) -> HttpResponseBase:
        try:
            found = _found(family, request, path)
            body = _body_of(request)
        except Refusal as refusal:
            return view_refuse(request, refusal)
        exchange = exchange_of(request, None, body, wrapping.door)
        exchange.row.rpc_id_type, exchange.row.method = "absent", found.route.method
        try:
            if len(body) > SMALL:
                await authenticate(request)
            parsed = await _parsed(body)
            caller = await authenticate(request)
        except (ParseError, InvalidRequest) as error:
            return await unreadable(request, exchange, wrapping, error)
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            return unknown_caller(exchange, wrapping, error)

        call = HttpCall(request=request, caller=caller, version=version_of(request), agent=agent)
        given = {} if tenant is None else {"tenant": tenant}

        def understand() -> Understood:
            if holds_nul(body) and (place := path_of_nul(parsed)) is not None:
                raise InvalidParams((place or "body", "must not hold the character U+0000"))
            return _understood(family, call, exchange, found, given, parsed)

        answer = await answered(call, exchange, wrapping, understand)
        return await compressed(request, response_to(answer), answer.weighed)

    def view_refuse(request: HttpRequest, refusal: Refusal) -> HttpResponse:
        return refuse(request, refusal, wrapping)

    view.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it
    view.refuse = view_refuse  # type: ignore[attr-defined]  # for the handler, which refuses before the view is called
    return view


async def _parsed(body: bytes) -> Any:
    """Raises ParseError and InvalidRequest."""
    if len(body) > LARGE:
        return await off_loop(read_json, body)
    return read_json(body) if body else {}


def _found(family: Family, request: HttpRequest, path: str) -> Found:
    """Raises Refusal: 404, 405."""
    try:
        return find(family, request.method or "", "/" + path)
    except MethodNotFound as error:
        raise Refusal(404, "", error=error) from None
    except NoSuchVerb as error:
        raise Refusal(405, str(error), allow=error.allowed) from None


def _body_of(request: HttpRequest) -> bytes:
    """Raises Refusal: 400, 413, 415."""
    body = read(request)
    if not body:
        return body
    if request.method != "POST":
        raise Refusal(400, f"a {request.method} has no body: put the parameters into the query")
    kind = (request.content_type or "").lower()
    if kind not in KINDS:
        raise wrong_type(kind)
    return body


def _understood(
    family: Family, call: HttpCall, exchange: OpenExchange, found: Found, given: dict[str, str], parsed: Any
) -> Understood:
    """Raises Refused, in the dialect of the body."""
    dialect = family.spoken(parsed, call.version)
    exchange.row.dialect = dialect.name
    try:
        check_version(family, call.version)
        check_scope(call.caller, OPERATIONS[dialect.methods[found.route.method].request].scope)
        params = params_of(found, given, _query_of(call.request), parsed)
        if params is not parsed:
            # An operator sees all that was asked, not only what stood in the body.
            exchange.asks(orjson.dumps(params))
    except Error as error:
        # Path and query are all that a GET asks with: without them a refusal tells an operator nothing.
        asked = parsed if isinstance(parsed, dict) else {"body": parsed}
        with contextlib.suppress(TooManyFieldsSent):
            # By name, so that what is secret is taken out.
            asked = asked | {"query": dict(call.request.GET.lists())}
        exchange.asks(orjson.dumps(asked | given | found.variables))
        raise Refused(error, dialect) from None
    return dialect, dialect.methods[found.route.method], params


def _query_of(request: HttpRequest) -> list[tuple[str, str]]:
    """Names and values in their order."""
    if not request.META.get("QUERY_STRING"):
        return []
    try:
        return [(name, value) for name, values in request.GET.lists() for value in values]
    except TooManyFieldsSent:
        raise InvalidParams(("query", "has too many members")) from None
