"""The door for REST (HTTP+JSON): calls without an envelope, whose verb and path name the method.

The routes are data of the languages (a2a/envelopes/bare.py). This module puts the parts of an HTTP call together.
"""

import contextlib
from typing import Any

import orjson
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from a2a import languages
from a2a.choice import CallError, Endpoint
from a2a.envelopes import Member
from a2a.envelopes.bare import NoSuchVerb, Place, find, params_of
from a2a.envelopes.body import holds_nul, path_of_nul, read_json
from a2a.errors import Error, InvalidParams, InvalidRequest, MethodNotFound, ParseError
from tasks_app.callers.access import check_right
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import OPERATIONS
from tasks_app.transports.call import SMALL, Call
from tasks_app.transports.enveloped import View
from tasks_app.transports.handling import handle
from tasks_app.transports.http import Refusal, call_of, read, refuse, wrong_type
from tasks_app.transports.http_replies import response_to
from tasks_app.transports.meaning import Selection
from tasks_app.transports.refusing import refuse_stranger, refuse_unreadable

KINDS = frozenset({"application/json", "application/a2a+json"})
"""Media types of a request's body (docs/protocol.md#media-types)."""


def rest(name: str) -> View:
    """Return the view of an endpoint's routes. Its `path` is the part behind the prefix.

    Django's check of CSRF does not apply: a session cookie counts only with its CSRF token (callers/sessions.py).
    """

    async def view(
        request: HttpRequest, path: str, agent: str | None = None, tenant: str | None = None
    ) -> HttpResponseBase:
        endpoint = languages.ALL.endpoints[name]
        try:
            place = _place(endpoint, request, path)
            body = _body_of(request, endpoint)
        except Refusal as refusal:
            return refuse(request, refusal, endpoint)
        call = call_of(request, endpoint, agent)
        exchange, wrapping = call.open(None, body), call.wrap(None)
        exchange.row.rpc_id_type, exchange.row.method = "absent", place.route.method
        try:
            if len(body) > SMALL:
                await call.identify()
            value = await _parse(body)
            await call.identify()
        except (ParseError, InvalidRequest) as error:
            return await response_to(request, call, await refuse_unreadable(call, exchange, wrapping, error))
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            return await response_to(request, call, refuse_stranger(exchange, wrapping, error))
        prefix = {} if tenant is None else {"tenant": tenant}

        def select() -> Selection:
            if holds_nul(body) and (where := path_of_nul(value)) is not None:
                raise InvalidParams((where or "body", "must not hold the character U+0000"))
            return _select(request, call, exchange, place, prefix, value)

        return await response_to(request, call, await handle(call, exchange, wrapping, select))

    view.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it
    view.routed = name  # type: ignore[attr-defined]  # for floods.py
    view.endpoint = name  # type: ignore[attr-defined]  # for the handler, which refuses before the view is called
    return view


async def _parse(body: bytes) -> Any:
    """Return the JSON of a body, and an empty object for an empty body. Raises ParseError and InvalidRequest."""
    if len(body) > LARGE:
        return await off_loop(read_json, body)
    return read_json(body) if body else {}


def _place(endpoint: Endpoint, request: HttpRequest, path: str) -> Place:
    """Return the route of the path. Raises Refusal: 404, 405."""
    try:
        return find(endpoint.routes, request.method or "", "/" + path)
    except MethodNotFound as error:
        raise Refusal(404, "", error=error) from None
    except NoSuchVerb as error:
        raise Refusal(405, str(error), allow=error.verbs) from None


def _body_of(request: HttpRequest, endpoint: Endpoint) -> bytes:
    """Return the body, which may be empty. Raises Refusal: 400, 413, 415."""
    body = read(request, endpoint.body_setting)
    if not body:
        return body
    if request.method != "POST":
        raise Refusal(400, f"a {request.method} has no body: put the parameters into the query")
    kind = (request.content_type or "").lower()
    if kind not in KINDS:
        raise wrong_type(kind)
    return body


def _select(
    request: HttpRequest, call: Call, exchange: OpenExchange, place: Place, prefix: dict[str, str], value: Any
) -> Selection:
    """Return the language, the method and the params of a call. Raises CallError."""
    member = Member(id=None, method=place.route.method, params=value, source=value)
    try:
        language, method = call.endpoint.choose(member, call.version, call.caller.language)
    except CallError as error:
        if error.language:
            exchange.row.dialect = error.language.name
        _record_params(request, exchange, place, prefix, value)
        raise
    exchange.row.dialect = language.name
    try:
        # Only the right: without it a caller must not learn what is wrong with the params. handle() does the rest of
        # authorize() behind them, so that a capability that is switched off is told in the words of the language.
        check_right(call.caller, OPERATIONS[method.request].right, language.spelling)
        params = params_of(place, prefix, _query_of(request), value)
        if params is not value:
            # Operators see all params, not only the members of the body.
            exchange.set_request(orjson.dumps(params))
    except Error as error:
        _record_params(request, exchange, place, prefix, value)
        raise CallError(error, language) from None
    return language, method, params


def _record_params(
    request: HttpRequest, exchange: OpenExchange, place: Place, prefix: dict[str, str], value: Any
) -> None:
    """Record the path and the query with the body. A GET has no other params, and operators see why it failed."""
    params = value if isinstance(value, dict) else {"body": value}
    with contextlib.suppress(TooManyFieldsSent):
        # Each value under its name, so that secrets are redacted.
        params = params | {"query": dict(request.GET.lists())}
    exchange.set_request(orjson.dumps(params | prefix | place.variables))


def _query_of(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the names and values of the query in their order. Raises InvalidParams."""
    if not request.META.get("QUERY_STRING"):
        return []
    try:
        return [(name, value) for name, values in request.GET.lists() for value in values]
    except TooManyFieldsSent:
        raise InvalidParams(("query", "has too many members")) from None
