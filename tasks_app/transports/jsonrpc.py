"""The door for JSON-RPC over HTTP: one endpoint for everything. It reads the envelope; calls.py does the rest."""

import asyncio
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from msgspec import UNSET
from msgspec.structs import replace

from a2a import jsonrpc as envelope
from a2a.dialects import Refused, choose
from a2a.errors import Error, InvalidRequest, ParseError
from a2a.jsonrpc import BadCall, Member
from a2a.requests import ListTasks
from a2a.sse import frame
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.bodies import SMALL
from tasks_app.transports.calls import (
    Answered,
    HttpCall,
    Understood,
    answered,
    late_response,
    release_after,
    response_to,
    stream_headers,
    unknown_caller,
    unreadable,
)
from tasks_app.transports.compression import compressed
from tasks_app.transports.http import Refusal, answer, authenticate, body_of, exchange_of, refuse, version_of
from tasks_app.transports.waiting import spaced
from tasks_app.transports.wrapping import STATUSES, in_envelope

BATCH_BYTES = 4_000_000
"""Members whose turn comes after so much has been answered are refused, undone."""
AT_ONCE = 16
"""Members of a batch that are worked on at the same time."""


async def jsonrpc(request: HttpRequest, agent: str | None = None) -> HttpResponseBase:
    """POST a call or a batch. CSRF does not apply: no cookie is looked at, a key is demanded."""
    try:
        body = body_of(request)
    except Refusal as refusal:
        return refuse(request, refusal)
    if len(body) > SMALL:
        # What a stranger sends is not worth reading. A small body is, for its id: it comes back with the refusal.
        try:
            await authenticate(request)
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            return unknown_caller(exchange_of(request, None, body), in_envelope(None), error)
    try:
        members = await _parsed(body)
    except (ParseError, InvalidRequest) as error:
        return await _unreadable(request, body, error)
    batch = isinstance(members, list)
    first = members[0] if isinstance(members, list) else members
    if isinstance(first, BadCall) and not batch:
        return await _unreadable(request, body, first.error, first.id)
    try:
        caller = await authenticate(request)
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        rpc_id = None if batch or first.id is UNSET else first.id
        return unknown_caller(exchange_of(request, rpc_id, body), in_envelope(rpc_id), error)
    call = HttpCall(request=request, caller=caller, version=version_of(request), agent=agent, batch=batch)
    if isinstance(members, list):
        return await compressed(request, await _answer_batch(call, members))
    answered = await _answer(call, members, body)
    return await compressed(request, _response(call, answered), answered.weighed)


jsonrpc.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it, without a call around each


async def _parsed(body: bytes) -> Member | list[Member]:
    return await off_loop(envelope.parse, body) if len(body) > LARGE else envelope.parse(body)


def _response(call: HttpCall, answered: Answered) -> HttpResponseBase:
    """The HTTP answer of a single call."""
    if (
        answered.payload is not None
        and call.version is None
        and call.request.headers.get("Accept") == "text/event-stream"
        and _is_plain(answered.error)
        and answered.streaming
    ):
        # Clients older than A2A-Version read nothing but a stream here: the refusal is its one event
        # (docs/protocol.md#envelope).
        headers = stream_headers(answered)
        return HttpResponse(frame(answered.payload), content_type="text/event-stream", headers=headers)
    return response_to(answered)


def _is_plain(error: Error | None) -> bool:
    """An error of the RPC layer, not one of HTTP as well."""
    return error is not None and type(error) not in STATUSES


async def _answer_batch(call: HttpCall, members: list[Member]) -> HttpResponseBase:
    """Replies in the order of the requests; 204 when all are notifications (JSON-RPC 2.0, section 6)."""
    shared = exchange_of(call.request, None, b"").request_id
    work = asyncio.ensure_future(_all_answers(call, members, shared))
    if all(member.id is UNSET for member in members):
        await work
        return HttpResponse(status=204, headers={"X-Request-ID": shared} | _joined(call.echoes))
    done, _ = await asyncio.wait({work}, timeout=settings.A2A_PING_SECONDS)
    if not done:
        # Its status is 200 whatever the members are answered.
        return late_response(spaced(partial(_replies, work)), shared, "application/json", _joined(call.echoes))
    answers = work.result()
    response = answer(await _replies(work), shared, headers=_joined(answered.headers for answered in answers))
    for one_answer in answers:
        release_after(response, one_answer)
    return response


async def _all_answers(call: HttpCall, members: list[Member], shared: str) -> list[Answered]:
    """Answer the members, some at a time, in their order."""
    slots, lists = asyncio.Semaphore(AT_ONCE), asyncio.Lock()
    size = 0

    async def one(member: Member) -> Answered:
        nonlocal size
        # Lists come one after another: what they have in flight is as large as a page each.
        async with slots, lists if _is_list(call, member) else nullcontext():
            if size > BATCH_BYTES:
                error = InvalidRequest(
                    detail=f"the answers of a batch may have {BATCH_BYTES} bytes in all; send the rest anew"
                )
                member = BadCall(id=member.id, error=error, source=member.source)
            answered = await _answer(call, member, orjson.dumps(member.source), shared)
            call.echoes.append(answered.headers)
            if answered.late:
                del member  # A wait may be long, and the message large.
                answered = replace(answered, payload=await answered.late.payload(started=False), late=None)
            # A refusal waits for nothing: a thousand of them would be one step of the loop.
            await asyncio.sleep(0)
            size += len(answered.payload or b"")
            return answered

    answers = asyncio.gather(*map(one, members))
    del members
    return await answers


async def _replies(work: "asyncio.Future[list[Answered]]") -> bytes:
    """Return the replies as one, when all are there. The places of large ones in the account are held by the work."""
    payloads = [answered.payload for answered in await work if answered.payload is not None]
    return await off_loop(_joined_replies, payloads) if sum(map(len, payloads)) > LARGE else _joined_replies(payloads)


def _joined_replies(payloads: list[bytes]) -> bytes:
    return b"".join((b"[", b",".join(payloads), b"]"))


def _is_list(call: HttpCall, member: Member) -> bool:
    if isinstance(member, BadCall):
        return False
    try:
        return choose(member.method, call.version)[1].request is ListTasks
    except Refused:
        return False


def _joined(echoes: Iterable[dict[str, str]]) -> dict[str, str]:
    """The headers of all members in one: what any of them names, once."""
    found: dict[str, dict[str, None]] = {}
    for echo in echoes:
        for name, value in echo.items():
            found.setdefault(name, {}).update(dict.fromkeys(value.split(", ")))
    return {name: ", ".join(values) for name, values in found.items()}


async def _answer(call: HttpCall, member: Member, body: bytes, request_id: str = "") -> Answered:
    """One member, recorded. Never raises."""
    exchange = exchange_of(call.request, member.id, body)
    if request_id:
        exchange.row.request_id = request_id

    def understand() -> Understood:
        if isinstance(member, BadCall):
            raise Refused(member.error)
        exchange.row.method = member.method[:64]
        dialect, method = choose(member.method, call.version)
        if member.nul and (error := envelope.nul_in(member.params)):
            raise Refused(error, dialect)
        return dialect, method, member.params

    return await answered(call, exchange, in_envelope(member.id), understand)


async def _unreadable(request: HttpRequest, body: bytes, error: Error, rpc_id: Any = None) -> HttpResponse:
    """An envelope that cannot be read."""
    exchange = exchange_of(request, rpc_id, body)
    if rpc_id is None:
        exchange.row.rpc_id_type = "absent"
    return await unreadable(request, exchange, in_envelope(rpc_id), error)
