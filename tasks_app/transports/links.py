"""The door for links to streams: POST makes a link to the stream of a task, and GET follows it by its URL alone.

`EventSource` of browsers can send no key, and asks for its URL again whenever the stream ends. So a client that has
seen the end of its task is answered with 204, after which it must not come again (WHATWG HTML, 9.2.3).
"""

import contextlib
from functools import partial
from typing import Any

import msgspec
import orjson
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from msgspec import Struct
from msgspec.structs import replace

from a2a import languages
from a2a.envelopes import Member
from a2a.envelopes.body import read_json
from a2a.errors import InvalidRequest, ParseError, TaskNotFound, TooManyCalls
from a2a.params import Whole, check
from a2a.requests import SubscribeToTask
from a2a.sse import last_seen
from a2a.states import TERMINAL, TaskState
from a2a.types import Json
from tasks_app.audit.refused_calls import OTHER_NETWORK, refused_calls
from tasks_app.callers.access import sight
from tasks_app.callers.networks import admits
from tasks_app.callers.stream_links import NO_KEY, FindReader, StreamLink, make_link, read_link
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import Busy
from tasks_app.database.waits import CallerLeft
from tasks_app.event_log import Head, ReadHead
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.limits import strangers
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.operations import authorize
from tasks_app.operations.tasks import is_shown
from tasks_app.transports.call import SMALL, Call
from tasks_app.transports.handling import handle, handle_own
from tasks_app.transports.http import (
    Refusal,
    add_limits,
    body_of,
    call_of,
    fault_of_key,
    find_origin,
    over_limit,
    refuse,
)
from tasks_app.transports.http_replies import no_content, response_to
from tasks_app.transports.meaning import Selection
from tasks_app.transports.refusing import refuse_stranger, refuse_unreadable

DOOR = "link"
METHOD = "links/create"
"""The name of the method in exchanges. It belongs to no language."""
REST = languages.ALL.endpoints["rest"]
"""The endpoint whose errors are those of this door."""


class _Wish(Struct, rename="camel"):
    task_id: str
    seconds: Whole | None = None
    version: str | None = None


# ------------------------------------------------------------------------- make


@csrf_exempt
async def create(request: HttpRequest, agent: str | None = None) -> HttpResponseBase:
    """Make a link to the stream of a task of the caller, as the body says."""
    try:
        body = body_of(request, REST)
        if len(body) > SMALL:
            raise Refusal(413, f"the body of a request for a link must have {SMALL} bytes at most")
    except Refusal as refusal:
        return refuse(request, refusal, REST)
    call = call_of(request, REST, agent)
    exchange, wrapping = call.open(None, body), call.wrap(None)
    exchange.row.rpc_id_type, exchange.row.method = "absent", METHOD
    try:
        value = read_json(body)
        await call.identify()
    except (ParseError, InvalidRequest) as error:
        reply = await refuse_unreadable(call, exchange, wrapping, error)
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        reply = refuse_stranger(exchange, wrapping, error)
    else:
        reply = await handle_own(call, exchange, wrapping, partial(_make, call, exchange, value))
    return await response_to(request, call, reply)


async def _make(call: Call, exchange: OpenExchange, value: Any) -> Json:
    """Return the answer with the URL of a link. Raises the errors of a2a/errors.py."""
    wish = msgspec.convert(check(value, _Wish), _Wish)
    link = make_link(wish.task_id, call.caller.owner_id, call.caller, wish.seconds, wish.version)
    authorize(SubscribeToTask, call.caller)
    address = call.address()
    if not address:
        raise InvalidRequest(detail="this server has no such name; its operator sets A2A_PUBLIC_URL")
    if await _find(call, exchange, wish.task_id) is None:
        raise TaskNotFound(taskId=wish.task_id)
    return link.describe(f"{address}/agents/{call.agent}" if call.agent else address)


# ----------------------------------------------------------------------- follow


async def follow(request: HttpRequest, task: str, agent: str | None = None) -> HttpResponseBase:
    """Send the stream of the task that the link leads to."""
    try:
        call, link = await _read_call(request, task, agent)
    except Refusal as refusal:
        return _private(refuse(request, refusal, REST, DOOR))
    exchange, wrapping = call.open(None, b""), call.wrap(None)
    exchange.row.rpc_id_type, exchange.row.method = "absent", languages.ALL.subscriptions[link.version][1]
    if (after := call.after()) and await _has_seen_all(call, exchange, task, after):
        try:
            await limits.spend(call.caller, LEAST_COST)
        except TooManyCalls as error:
            refused_calls.count(call.caller, error.reason, call.peer)
            return _private(add_limits(refuse(request, over_limit(error), REST, DOOR), call))
        exchange.end("result", status=204)
        recorder.close(exchange)
        return _private(add_limits(no_content(exchange.request_id, {}), call))

    def select() -> Selection:
        exchange.set_request(orjson.dumps({"id": task, "linkExpiresAt": link.expires_at}))
        member = Member(id=None, method=exchange.row.method, params={}, source={})
        language, method = call.endpoint.choose(member, link.version)
        return language, replace(method, decode=lambda _: SubscribeToTask(id=task, shows_end=True)), {}

    return _private(await response_to(request, call, await handle(call, exchange, wrapping, select)))


async def _read_call(request: HttpRequest, task: str, agent: str | None) -> tuple[Call, StreamLink]:
    """Return the call and its link. Raises Refusal: 400, 403, 405, 429, 503."""
    if request.method != "GET":
        raise Refusal(405, f"use GET, not {request.method}", allow="GET")
    query: dict[str, str] = {}
    with contextlib.suppress(TooManyFieldsSent):
        query = request.GET.dict()
    try:
        strangers.check_calls(find_origin(request))
        link = read_link(task, query.get("signature", ""))
    except TooManyCalls as error:
        raise over_limit(error) from None
    except ValueError as error:
        raise _wrong_link(request, str(error)) from None
    call = call_of(request, languages.ALL.subscriptions[link.version][0], agent)
    call.door, call.version, call.evidence = DOOR, link.version, None
    try:
        after = call.after()
        after = last_seen(query.get("afterSequence"), "afterSequence") if after is None else after
    except InvalidRequest as error:
        raise Refusal(400, "", error=error) from None
    call.after = lambda: after
    call.until, call.proof = link.until, FindReader(link.owner_id, link.key_id, link.credential, link.since)
    try:
        call.identity = await bridge.ask(call.proof)
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        raise fault_of_key(error, "a link") from None
    if call.identity is None or not call.is_for(call.identity):
        raise Refusal(403, NO_KEY)
    if not admits(call.identity.networks, call.peer):
        refused_calls.count(call.identity, OTHER_NETWORK, call.peer)
        raise Refusal(403, NO_KEY)
    return call, link


def _wrong_link(request: HttpRequest, sentence: str) -> Refusal:
    """Count a wrong link, and return its refusal: 403, or 429 if its address has sent too many."""
    try:
        strangers.count_failure(find_origin(request))
    except TooManyCalls as error:
        return over_limit(error)
    return Refusal(403, sentence)


async def _has_seen_all(call: Call, exchange: OpenExchange, task: str, after: int) -> bool:
    """Return whether the task has ended and the client has its last event. False if the task cannot be read."""
    exchange.set_caller(call.caller)
    try:
        turn = await call.take_turn()
    except (Busy, CallerLeft) as error:
        call.no_turn = error  # The call after this is refused at once, and does not wait a second time.
        return False
    try:
        with turn:
            authorize(SubscribeToTask, call.caller)
            head = await _find(call, exchange, task)
    except Exception:  # noqa: BLE001  # the call after this reports it
        return False
    return head is not None and TaskState(head.state) in TERMINAL and head.seq <= after


async def _find(call: Call, exchange: OpenExchange, task: str) -> Head | None:
    """Return the head of a task that the caller may see at this address; None without one.

    Only the head: the holder of a link may ask often, and a task may be large.
    """
    if "\0" in task:
        return None  # PostgreSQL raises an error for a text with U+0000.
    ask = partial(bridge.ask, departure=call.departure)
    head = await ask(ReadHead(task_id=task, sight=sight(call.caller, task)))
    if head is None or not await is_shown(ask, call.caller, call.agent, task, head.agent):
        return None
    exchange.about(task, head.context_id, head.seq)
    return head


def _private(response: HttpResponseBase) -> HttpResponseBase:
    """Return the response with headers that keep the URL, which is a permission, and the answer from others."""
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store, no-transform"
    return response


# For the handler, which refuses before the view is called.
create.endpoint = REST.name  # type: ignore[attr-defined]
follow.endpoint = REST.name  # type: ignore[attr-defined]
