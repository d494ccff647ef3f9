"""The door for JSON-RPC over HTTP: one endpoint for everything. It decodes, lets perform, encodes and records."""

import asyncio
import contextlib
from typing import Any

import orjson
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a import jsonrpc as envelope
from a2a.dialects import Refused, choose, neutral
from a2a.dialects.shape import Dialect
from a2a.errors import Error, InvalidRequest, ParseError, Unauthenticated, Unavailable
from a2a.jsonrpc import BadCall, Call, Member
from a2a.requests import GetExtendedCard, Request, StreamMessage, SubscribeToTask
from a2a.sse import frame, last_seen
from tasks_app.access import Caller, check_scope, digest
from tasks_app.addresses import address_of
from tasks_app.exchanges import OpenExchange, recorder
from tasks_app.operations import OPERATIONS, Context, Follow, perform
from tasks_app.readers import readers
from tasks_app.transports.http import (
    STATUSES,
    Refusal,
    authenticate,
    body_of,
    error_response,
    exchange_of,
    json_response,
    key_of,
    refuse,
    told,
    version_of,
)
from tasks_app.transports.streams import Stream

BATCH_BYTES = 16_000_000
"""Members whose turn comes after so much has been answered are refused, undone."""
AT_ONCE = 16
"""Members of a batch that are worked on at the same time."""


class HttpCall(Struct, kw_only=True):
    """What the members of one HTTP call share."""

    request: HttpRequest
    caller: Caller
    version: str | None
    agent: str | None
    batch: bool


class Answered(Struct, kw_only=True):
    """How a member was answered: with JSON, with a stream, or (a notification) not at all."""

    exchange: OpenExchange
    payload: bytes | None = None
    stream: Stream | None = None
    error: Error | None = None


@csrf_exempt
async def jsonrpc(request: HttpRequest, agent: str | None = None) -> HttpResponseBase:
    """POST a call or a batch. CSRF does not apply: no cookie is looked at, a key is demanded."""
    try:
        body = body_of(request)
    except Refusal as refusal:
        return refuse(request, refusal)
    try:
        members = envelope.parse(body)
    except (ParseError, InvalidRequest) as error:
        return await _unreadable(request, body, error)
    batch = isinstance(members, list)
    first = members[0] if isinstance(members, list) else members
    if isinstance(first, BadCall) and not batch:
        return await _unreadable(request, body, first.error, first.id)
    try:
        caller = await authenticate(request)
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        return _unknown_caller(request, body, error, None if batch or first.id is UNSET else first.id)
    call = HttpCall(request=request, caller=caller, version=version_of(request), agent=agent, batch=batch)
    if isinstance(members, list):
        return await _answer_batch(call, members)
    return _response(call, await _answer(call, members, body))


def _response(call: HttpCall, answered: Answered) -> HttpResponseBase:
    """The HTTP answer of a single call."""
    request_id = answered.exchange.request_id
    if answered.stream is not None:
        headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "X-Request-ID": request_id}
        return StreamingHttpResponse(answered.stream.frames(), content_type="text/event-stream", headers=headers)
    if answered.payload is None:
        return HttpResponse(status=204, headers={"X-Request-ID": request_id})
    if call.version is None and call.request.headers.get("Accept") == "text/event-stream" and _is_plain(answered.error):
        # Clients older than A2A-Version read nothing but a stream here: the refusal is its one event (fact sheet 1.3).
        return HttpResponse(
            frame(answered.payload), content_type="text/event-stream", headers={"X-Request-ID": request_id}
        )
    if answered.error is not None:
        return error_response(answered.error, answered.payload, request_id)
    return json_response(answered.payload, request_id)


def _is_plain(error: Error | None) -> bool:
    """An error of the RPC layer, not one of HTTP as well."""
    return error is not None and type(error) not in STATUSES


async def _answer_batch(call: HttpCall, members: list[Member]) -> HttpResponse:
    """Replies in the order of the requests; 204 when all are notifications (JSON-RPC 2.0, section 6)."""
    slots = asyncio.Semaphore(AT_ONCE)
    shared = exchange_of(call.request, None, b"").request_id

    size = 0

    async def one(member: Member) -> Answered:
        nonlocal size
        async with slots:
            if size > BATCH_BYTES:
                error = InvalidRequest(
                    detail=f"the answers of a batch may have {BATCH_BYTES} bytes in all; send the rest anew"
                )
                member = BadCall(id=None if member.id is UNSET else member.id, error=error, source=member.source)
            answered = await _answer(call, member, orjson.dumps(member.source), shared)
            size += len(answered.payload or b"")
            return answered

    answers = await asyncio.gather(*map(one, members))
    replies = [answered.payload for answered in answers if answered.payload is not None]
    if not replies:
        return HttpResponse(status=204, headers={"X-Request-ID": shared})
    return json_response(b"[" + b",".join(replies) + b"]", shared)


async def _answer(call: HttpCall, member: Member, body: bytes, request_id: str = "") -> Answered:
    """One member, recorded. Never raises: this is the door's one catch."""
    exchange = exchange_of(call.request, member.id, body)
    if request_id:
        exchange.row.request_id = request_id
    exchange.asked_by(call.caller)
    dialect: Dialect | None = None
    try:
        if isinstance(member, BadCall):
            raise member.error
        exchange.row.method = member.method[:64]
        dialect, method = choose(member.method, call.version)
        exchange.row.dialect = dialect.name
        check_scope(call.caller, OPERATIONS[method.request].scope)
        request = _wish(call, method.request, method.decode(member.params))
        rpc_id = None if member.id is UNSET else member.id
        exchange.encode = lambda result: envelope.reply(rpc_id, method.encode(result))
        result = await perform(request, Context(caller=call.caller, exchange=exchange, agent=call.agent))
    except Refused as refused:
        return _failed(member, exchange, refused.error, refused.json())
    except Error as error:
        return _failed(member, exchange, error, dialect.error(error) if dialect else neutral(error))
    except Exception as error:  # noqa: BLE001  # the door's one catch; logged with its reference
        return _fault(member, exchange, dialect, error)
    if isinstance(result, Follow):
        return _followed(call, member, exchange, result, dialect)
    payload = exchange.answer or exchange.encode(result)
    if exchange.answer is None or member.notification:
        exchange.answer = None
        exchange.end(
            "notified" if member.notification else "result", payload, status=204 if member.notification else 200
        )
        if exchange.row.task_id is None and not member.notification:
            exchange.keep(payload)
    recorder.close(exchange)
    return Answered(exchange=exchange, payload=None if member.notification else payload)


def _wish(call: HttpCall, kind: type[Request], request: Any) -> Any:
    """The request, if it may be asked here and now. Raises InvalidRequest and Unavailable."""
    if kind.streaming and call.batch:
        raise InvalidRequest(detail="a method that streams cannot be a member of a batch")
    if kind.changes and readers.draining:
        raise Unavailable(retry_after=2)
    if isinstance(request, StreamMessage | SubscribeToTask):
        return replace(request, after=last_seen(call.request.META.get("HTTP_LAST_EVENT_ID")))
    if isinstance(request, GetExtendedCard):
        return replace(request, address=address_of(call.request))
    return request


def _followed(call: HttpCall, member: Call, exchange: OpenExchange, follow: Follow, dialect: Dialect) -> Answered:
    if member.notification:
        # The work is done, and nobody hears of it (fact sheet 1.3).
        exchange.end("notified", status=204)
        recorder.close(exchange)
        return Answered(exchange=exchange)
    if not exchange.written:
        recorder.open(exchange)
    stream = Stream(follow, dialect, None if member.id is UNSET else member.id, exchange, digest(key_of(call.request)))
    return Answered(exchange=exchange, stream=stream)


def _failed(member: Member, exchange: OpenExchange, error: Error, wire: dict[str, Any]) -> Answered:
    """An error of the member, with its id as far as it is known; nothing for a notification."""
    notification = isinstance(member, Call) and member.notification
    payload = envelope.failure(None if member.id is UNSET else member.id, wire)
    status = STATUSES.get(type(error), 200)
    exchange.end(
        "notified" if notification else "error", payload, code=wire["code"], status=204 if notification else status
    )
    exchange.keep(payload)
    exchange.answer = None
    recorder.close(exchange)
    return Answered(exchange=exchange, payload=None if notification else payload, error=error)


def _fault(member: Member, exchange: OpenExchange, dialect: Dialect | None, cause: Exception) -> Answered:
    """A fault of ours, told in the words of the dialect if that is known."""
    error = told(exchange, cause)
    return _failed(member, exchange, error, dialect.error(error) if dialect else neutral(error))


async def _unreadable(request: HttpRequest, body: bytes, error: Error, rpc_id: Any = None) -> HttpResponse:
    """An envelope that cannot be read; its content is kept only for callers who are known."""
    exchange = exchange_of(request, rpc_id, body)
    if rpc_id is None:
        exchange.row.rpc_id_type = "absent"
    with contextlib.suppress(Unauthenticated, DatabaseError, InterfaceError):
        exchange.asked_by(await authenticate(request))
    wire = neutral(error)
    payload = envelope.failure(rpc_id, wire)
    exchange.end("refused", payload, code=wire["code"])
    exchange.keep(payload)
    recorder.close(exchange)
    return json_response(payload, exchange.request_id)


def _unknown_caller(request: HttpRequest, body: bytes, cause: Exception, rpc_id: Any) -> HttpResponse:
    """401 with a challenge, or a fault of ours on the way to it; recorded without the content."""
    exchange = exchange_of(request, rpc_id, body)
    error = cause if isinstance(cause, Error) else told(exchange, cause)
    wire = neutral(error)
    payload = envelope.failure(rpc_id, wire)
    response = error_response(error, payload, exchange.request_id)
    exchange.end("refused", payload, code=wire["code"], status=response.status_code)
    recorder.close(exchange)
    return response
