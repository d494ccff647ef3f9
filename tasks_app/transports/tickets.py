"""The door for tickets, beside each path of the WebSocket door (docs/websocket.md#tickets)."""

import orjson
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET

from a2a.errors import RateLimited
from a2a.params import write_time
from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers import tickets
from tasks_app.callers.api_keys import digests_of
from tasks_app.callers.credentials import encode, reference_to
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.transports.call import Call
from tasks_app.transports.handshake import DOOR, ENDPOINT, agent_of, check_agent, encode_refusal
from tasks_app.transports.http import Refusal, add_limits, answer, call_of, fault_of_key, line_of, over_limit

SUFFIX = "/ticket"
"""The end of the path, behind that of a socket."""
SUBJECT = "a ticket"
METHOD = "tickets/create"
"""The name of the method in exchanges. It belongs to no language."""


@csrf_exempt
async def ticket(request: HttpRequest) -> HttpResponse:
    """Answer with a new ticket for the caller's key, or refuse as a handshake does."""
    try:
        call = _call_of(request)
    except Refusal as refusal:
        return encode_refusal(request, refusal)
    try:
        response = await _answer(request, call)
    except Refusal as refusal:
        response = encode_refusal(request, refusal)
    return add_limits(response, call)


def _call_of(request: HttpRequest) -> Call:
    """Return the call. Raises Refusal: 405, 404."""
    if request.method != "POST":
        raise Refusal(405, f"use POST, not {request.method}")
    call = call_of(request, ENDPOINT, agent_of(request.path_info.rstrip("/").removesuffix(SUFFIX)))
    call.door, call.departure = DOOR, None
    return call


async def _answer(request: HttpRequest, call: Call) -> HttpResponse:
    """Return the answer, which is recorded with its ticket masked. Raises Refusal: 404, 401, 429, 503."""
    exchange = call.open(UNSET, line_of(request))
    exchange.row.method = METHOD
    try:
        await call.identify()
        with await call.take_turn():
            check_agent(call.caller, call.agent)
            exchange.set_caller(call.caller)
            await limits.spend(call.caller, LEAST_COST)
            exchange.is_change = True
            new = await tickets.issue(call.caller.owner_id, _holder_of(call), exchange.entry())
    except RateLimited as error:
        if call.identity is not None:  # Else it is the limit of the address that is reached.
            refused_calls.count(call.identity, error.reason, call.peer)
        raise over_limit(error) from None
    except Refusal:
        raise
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        raise fault_of_key(error, SUBJECT) from None
    body = orjson.dumps({"ticket": new.ticket, "expiresAt": write_time(new.expires_at)})
    exchange.end("result", body)
    exchange.keep(body)
    recorder.close(exchange)
    return answer(body, exchange.request_id)


def _holder_of(call: Call) -> tuple[str, ...]:
    """Return the text to store for a ticket: the digests of the key, or a reference to another credential.

    Raises Refusal: 400.
    """
    if call.evidence is not None and call.caller.key_id is not None:
        return digests_of(call.evidence)
    if (reference := reference_to(call.caller)) is None:
        raise Refusal(400, "a ticket stands for an API key, a token or a certificate, and this caller has none of them")
    return (encode(reference),)
