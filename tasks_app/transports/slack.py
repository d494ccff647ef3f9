"""The door for events of Slack, at /slack/events. An event is stored, and then acknowledged; the responder does the
rest (tasks_app/slack)."""

import logging
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from msgspec import UNSET

from a2a import languages
from a2a.envelopes.body import read_json
from a2a.errors import Error, InvalidParams, InvalidRequest, ParseError, TooManyCalls, Unavailable
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.hints import DueRows, hints
from tasks_app.limits import strangers
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.slack import arrivals, forms, workspaces
from tasks_app.slack.extra import is_on
from tasks_app.slack.forms import CHALLENGE, EVENT
from tasks_app.slack.signing import SIGNATURE, TIMESTAMP, is_signed
from tasks_app.slack.workspaces import Installation
from tasks_app.transports.call import SMALL
from tasks_app.transports.faults import fault
from tasks_app.transports.http import Refusal, body_of, call_of, find_origin, over_limit, refuse, too_large

log = logging.getLogger(__name__)
DOOR, METHOD = "slack", "slack/events"
"""The door and the method of events in exchanges. The method of a question ends with the kind of its event."""
REST = languages.ALL.endpoints["rest"]
"""The endpoint whose errors are those of this door."""


async def events(request: HttpRequest) -> HttpResponse:
    """Acknowledge an event, once the question in it is stored. Slack sends it again after any other answer."""
    if not is_on():
        raise Http404
    try:
        body = body_of(request, REST)
        payload = await _read(body)
        home = await _find(request, body, payload)
        return await _receive(request, body, payload, home)
    except Refusal as refusal:
        return refuse(request, refusal, REST, DOOR)


async def _read(body: bytes) -> dict[str, Any]:
    """Return the members of a body. Raises Refusal: 400."""
    try:
        payload = await off_loop(read_json, body) if len(body) > LARGE else read_json(body)
    except (ParseError, InvalidRequest) as error:
        raise Refusal(400, "", error=error) from None
    if not isinstance(payload, dict):
        raise Refusal(400, "an event is a JSON object")
    return payload


async def _find(request: HttpRequest, body: bytes, payload: dict[str, Any]) -> Installation | None:
    """Return the workspace whose app signed the request; None for the trial of an address. Raises Refusal: 401, 413,
    429, 503."""
    is_trial = payload.get("type") == CHALLENGE
    if is_trial and len(body) > SMALL:
        # Any stranger can send one, and its signature is compared with those of up to a hundred secrets.
        raise too_large(SMALL)
    try:
        look_up = workspaces.all_secrets if is_trial else partial(workspaces.find, _team_of(payload))
        result = await bridge.ask(DoApart(look_up))
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        raise _fault(request, error) from None
    home = None if result is None or isinstance(result, tuple) else result
    secrets = result if isinstance(result, tuple) else home.secrets if home else ()
    if not is_signed(body, request.headers.get(TIMESTAMP), request.headers.get(SIGNATURE), secrets):
        raise _unsigned(request)
    return home


def _team_of(payload: dict[str, Any]) -> str:
    """Return the workspace in which the app is installed. In a shared channel the event may be of another one."""
    authorizations = payload.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    team = first.get("team_id") if isinstance(first, dict) else None
    return str(team or payload.get("team_id") or "")


def _unsigned(request: HttpRequest) -> Refusal:
    """Count a request that is not signed by Slack, and return its refusal: 401, or 429 for one too many."""
    try:
        strangers.count_failure(find_origin(request))
    except TooManyCalls as error:
        return over_limit(error)
    return Refusal(401, "the signature is not that of a Slack app of this server, or older than five minutes")


async def _receive(
    request: HttpRequest, body: bytes, payload: dict[str, Any], home: Installation | None
) -> HttpResponse:
    """Store the question of a signed request, and acknowledge it. Raises Refusal: 400, 500, 503."""
    from tasks_app.slack import bolt  # of the extra `slack`

    if payload.get("type") not in (EVENT, CHALLENGE):
        log.warning("Slack sends %s", str(payload.get("type"))[:64])
        return _end(_open(request, body, payload, home), HttpResponse(status=200))
    try:
        members = forms.select(payload)
    except InvalidParams as error:
        raise Refusal(400, "", error=error) from None
    exchange = _open(request, body, payload, home)
    reading = bolt.read(members, home)
    if reading.question is not None and home is not None:
        exchange.row.method = f"{METHOD}/{reading.question.kind}"[:64]
        try:
            exchange.is_change = await arrivals.store(reading.question, home) is not None
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            raise _fault(request, error, exchange) from None
        hints.due(DueRows.QUESTIONS)
    return _end(exchange, HttpResponse(reading.body, status=reading.status, content_type=reading.media))


def _open(request: HttpRequest, body: bytes, payload: dict[str, Any], home: Installation | None) -> OpenExchange:
    """Return the exchange of a signed request. Its content is redacted like any other."""
    call = call_of(request, REST)
    call.door = DOOR
    event_id = payload.get("event_id")
    exchange = call.open(event_id if isinstance(event_id, str) else UNSET, body)
    exchange.row.method = METHOD
    if home is not None:
        exchange.set_caller(home.caller)
    return exchange


def _end(exchange: OpenExchange, response: HttpResponse) -> HttpResponse:
    """Record the exchange, and return its response."""
    exchange.end("result", response.content, status=response.status_code)
    exchange.keep(response.content)
    recorder.close(exchange)
    response["X-Request-ID"] = exchange.request_id
    response["Cache-Control"] = "no-store"
    return response


def _fault(request: HttpRequest, cause: Exception, exchange: OpenExchange | None = None) -> Refusal:
    """Log a fault, and return the refusal after which Slack sends the event again."""
    if isinstance(cause, Error):
        return Refusal(503, "", error=cause)
    error = fault(exchange or call_of(request, REST).open(UNSET, b""), cause)
    return Refusal(503 if isinstance(error, Unavailable) else 500, "", error=error)


# For the handler, which refuses before the view is called.
events.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it
events.endpoint = REST.name  # type: ignore[attr-defined]
