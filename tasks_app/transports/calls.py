"""A call over HTTP, once its door has understood it: performed, told, recorded. What the doors of HTTP share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import Answer, Result, TaskPage
from a2a.dialects import Refused
from a2a.documents import TaskDocument
from a2a.errors import Error, InvalidRequest, Unauthenticated, Unavailable
from a2a.language import Dialect, Method
from a2a.requests import GetExtendedCard, Request, SendMessage
from a2a.sse import last_seen
from tasks_app.callers.access import Caller, digests
from tasks_app.callers.account import Holding, account
from tasks_app.cards.addresses import address_of
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, Follow, Left, Wait, check_may, perform, wait_on
from tasks_app.transports.http import (
    VERSION,
    answer,
    authenticate,
    error_answer,
    extensions_of,
    fault,
    headers_of,
    key_of,
    linked,
)
from tasks_app.transports.streams import Stream, size_of_task
from tasks_app.transports.waiting import LateAnswer
from tasks_app.transports.wrapping import Wrapping


class HttpCall(Struct, kw_only=True):
    """One call of HTTP; the members of a batch share it."""

    request: HttpRequest
    caller: Caller
    version: str | None
    agent: str | None
    batch: bool = False
    echoes: list[dict[str, str]] = []
    """Headers that the members of a batch add, as far as they were begun."""


class Answered(Struct, kw_only=True):
    """How a call was answered: with JSON, with a stream, or (a notification) not at all."""

    exchange: OpenExchange
    wrapping: Wrapping
    payload: bytes | None = None
    stream: Stream | None = None
    late: LateAnswer | None = None
    """The call waits, and its answer is long in coming."""
    error: Error | None = None
    status: int = 200
    streaming: bool = False
    """A stream of 0.x was asked for."""
    weighed: Holding | None = None
    """The bytes of a large payload, in the account of the caller until it is sent."""
    headers: dict[str, str] = {}
    """Headers that this answer adds: the version it is in, and the extensions that it was made with."""


Understood = tuple[Dialect, Method, Any]
"""The dialect, the method and the params of a call."""


class Meaning(Struct):
    """A call as far as it was understood: a failure is told in its dialect."""

    dialect: Dialect | None = None
    method: Method | None = None

    @property
    def streams_in_0_x(self) -> bool:
        return (
            self.dialect is not None
            and self.method is not None
            and self.method.request.streaming
            and self.dialect.version != "1.0"
        )


async def answered(
    call: HttpCall, exchange: OpenExchange, wrapping: Wrapping, understand: Callable[[], Understood]
) -> Answered:
    """The call, performed and recorded. Raises nothing but CancelledError: this is the one catch of the doors."""
    meaning = Meaning()
    left = getattr(call.request, "left", None)
    context = Context(caller=call.caller, exchange=exchange, agent=call.agent, left=left, patience=0.0)
    try:
        read = partial(_read, call, exchange, understand, meaning)
        dialect, method, request = await off_loop(read) if exchange.row.request_bytes > LARGE else read()
        exchange.encode = lambda result: b"".join((wrapping.head, method.encode(result), wrapping.tail))
        # Before the work: what is accepted is not refused for want of a stream.
        held = account.hold(call.caller.owner_id, "streams") if method.request.streaming else None
        # The member of a batch waits in the answer of all, and a notification has none.
        result, weighed = await _performed(request, context, held, waits=not (call.batch or wrapping.silent))
        if isinstance(result, Follow):
            followed = _followed(call, exchange, wrapping, result, dialect, held, weighed)
            return replace(followed, headers=_told_of(dialect, context))
        if isinstance(result, Wait):
            return _waiting(call, exchange, wrapping, result, dialect, context)
        payload, weighed = await _encoded(
            call, exchange, result, counts=not method.request.changes and not wrapping.silent
        )
    except Left:
        return _left(exchange, wrapping)
    except asyncio.CancelledError:
        _left(exchange, wrapping)
        raise
    except Refused as refused:
        failed = _failed(exchange, wrapping, refused.error, refused.dialect)
        return replace(failed, headers=_told_of(refused.dialect, context))
    except Error as error:
        said = meaning.dialect.words(error) if meaning.dialect else error
        failed = _failed(exchange, wrapping, said, meaning.dialect)
        return replace(failed, headers=_told_of(meaning.dialect, context), streaming=meaning.streams_in_0_x)
    except Exception as error:  # noqa: BLE001  # the doors' one catch; logged with its reference
        failed = _failed(exchange, wrapping, fault(exchange, error), meaning.dialect)
        return replace(failed, headers=_told_of(meaning.dialect, context))
    return await _answered_with(call, exchange, wrapping, result, payload, weighed, _told_of(dialect, context))


def _left(exchange: OpenExchange, wrapping: Wrapping) -> Answered:
    """Record a call whose caller has left."""
    # A change that it asked for may have been begun or not.
    exchange.failed()
    exchange.end("left", status=None)
    recorder.close(exchange)
    return Answered(exchange=exchange, wrapping=wrapping)


async def _answered_with(
    call: HttpCall, exchange: OpenExchange, wrapping: Wrapping, result: Result, payload: bytes,
    weighed: Holding | None, headers: dict[str, str],
) -> Answered:  # fmt: skip
    """Record the result of a call; a notification is not told of it."""
    if exchange.answer is None or wrapping.silent:
        exchange.answer = None
        exchange.end("notified" if wrapping.silent else "result", payload, status=204 if wrapping.silent else 200)
        await _keep(exchange, payload, result, wrapping)
    recorder.close(exchange)
    shown = None if wrapping.silent else await _linked(payload, call.request)
    return Answered(exchange=exchange, wrapping=wrapping, payload=shown, headers=headers, weighed=weighed)


async def _linked(payload: bytes, request: HttpRequest) -> bytes:
    return await off_loop(linked, payload, request) if len(payload) > LARGE else linked(payload, request)


async def _encoded(
    call: HttpCall, exchange: OpenExchange, result: Result, *, counts: bool
) -> tuple[bytes, Holding | None]:
    """Return the whole answer, and its place in the account of its caller if it is large. Raises RateLimited and
    Unavailable where only something large was read; what was done is answered."""
    if exchange.answer is not None or exchange.encode is None:
        return exchange.answer or b"", None
    payload = await off_loop(exchange.encode, result) if size_of(result) > LARGE else exchange.encode(result)
    if not counts or len(payload) <= LARGE:
        return payload, None
    # An answer that is larger than the share of an owner goes out while nothing else does.
    weight = min(len(payload), settings.A2A_OWNER_BODY_BYTES)
    return payload, account.hold(call.caller.owner_id, "bodies", weight)


def size_of(result: Result) -> int:
    """Return about how many bytes the tasks of a result have."""
    tasks = result.tasks if isinstance(result, TaskPage) else [result.task] if isinstance(result, Answer) else []
    return sum(size_of_task(task) for task in tasks if task)


async def _keep(exchange: OpenExchange, payload: bytes, result: Result, wrapping: Wrapping) -> None:
    """Record an answer that cannot be derived from the log."""
    if exchange.row.task_id is not None or wrapping.silent:
        return
    if isinstance(result, TaskPage):
        exchange.keep_list(payload, result)
    elif len(payload) > LARGE:
        await off_loop(exchange.keep, payload)
    else:
        exchange.keep(payload)


def _read(
    call: HttpCall, exchange: OpenExchange, understand: Callable[[], Understood], meaning: Meaning
) -> tuple[Dialect, Method, Any]:
    """Return what is asked for. Of a large call it is done off the loop."""
    exchange.asked_by(call.caller)
    dialect, method, params = understand()
    meaning.dialect, meaning.method = dialect, method
    exchange.row.dialect = dialect.name
    check_may(call.caller, method.request)
    return dialect, method, _wish(call, method.request, method.decode(params))


def _told_of(dialect: Dialect | None, context: Context) -> dict[str, str]:
    """Return the headers with the version of an answer, once a dialect is chosen, and with the extensions that were
    activated, also where the call failed after that."""
    if dialect is None:
        return {}
    version = {VERSION: dialect.version}
    return version | {dialect.extensions_header: ", ".join(context.activated)} if context.activated else version


def _wish(call: HttpCall, kind: type[Request], request: Any) -> Any:
    """The request, if it may be asked here and now. Raises InvalidRequest and Unavailable."""
    if kind.streaming and call.batch:
        raise InvalidRequest(detail="a method that streams cannot be a member of a batch")
    if kind.changes and readers.draining:
        raise Unavailable(retry_after=2)
    if issubclass(kind, SendMessage) and (extensions := extensions_of(call.request)):
        request = replace(request, extensions=extensions)
    if kind.streaming:
        return replace(request, after=last_seen(call.request.META.get("HTTP_LAST_EVENT_ID")))
    if isinstance(request, GetExtendedCard):
        return replace(request, address=address_of(call.request))
    return request


async def _performed(
    request: Request, context: Context, held: Holding | None, *, waits: bool
) -> tuple[Result | Follow | Wait, Holding | None]:
    """Return what came of it, and of a stream that only reads what its large beginning holds of the account. Where it
    waits, it does so until its headers are due. Raises the errors of perform()."""
    try:
        result = await perform(request, context)
        if isinstance(result, Wait) and waits and context.exchange:
            context.patience = context.exchange.began + settings.A2A_PING_SECONDS
            result = await wait_on(result, context)
        if isinstance(result, Follow) and not request.changes:
            return result, _weighed(context.caller, result)
        return result, None
    except BaseException:
        # At once: an error keeps alive all that it passed through until garbage is collected.
        if held:
            held.release()
        raise


def _weighed(caller: Caller, follow: Follow) -> Holding | None:
    """Enter the large beginning of a stream into the account, until it is sent. Raises RateLimited and Unavailable."""
    size = size_of_task(follow.first) if isinstance(follow.first, TaskDocument) else 0
    return account.hold(caller.owner_id, "bodies", min(size, settings.A2A_OWNER_BODY_BYTES)) if size > LARGE else None


def _followed(
    call: HttpCall, exchange: OpenExchange, wrapping: Wrapping, follow: Follow, dialect: Dialect,
    held: Holding | None, weighed: Holding | None,
) -> Answered:  # fmt: skip
    if wrapping.silent:
        # The work is done, and nobody hears of it (docs/protocol.md#envelope).
        exchange.end("notified", status=204)
        recorder.close(exchange)
        return Answered(exchange=exchange, wrapping=wrapping)
    if not exchange.written:
        recorder.open(exchange)
    key, base = digests(key_of(call.request)), address_of(call.request)
    stream = Stream(follow, dialect, wrapping, exchange, key, base, held, weighed)
    return Answered(exchange=exchange, wrapping=wrapping, stream=stream)


def _waiting(
    call: HttpCall, exchange: OpenExchange, wrapping: Wrapping, wait: Wait, dialect: Dialect, context: Context
) -> Answered:
    """Keep of the call what its answer needs. Raises RateLimited and Unavailable."""
    headers = _told_of(dialect, context)
    if wrapping.silent:
        exchange.end("notified", status=204)
        recorder.close(exchange)
        return Answered(exchange=exchange, wrapping=wrapping, headers=headers)
    held = account.hold(call.caller.owner_id, "waits")
    if not exchange.written:
        recorder.open(exchange)
    exchange.lighten()
    # From here on the handler that sends the answer notices that the client has left, and cancels the wait.
    context.left = None
    key, base = digests(key_of(call.request)), address_of(call.request)
    late = LateAnswer(wait, context, exchange, dialect, wrapping, key, base, held)
    return Answered(exchange=exchange, wrapping=wrapping, late=late, headers=headers)


def _failed(exchange: OpenExchange, wrapping: Wrapping, error: Error, dialect: Dialect | None) -> Answered:
    """An error in the words of the dialect, if that is known; nothing for a notification."""
    # What the error passed through may hold a large answer, and would live until garbage is collected.
    error.__traceback__ = None
    said = wrapping.tell(error, dialect, None)
    silent = wrapping.silent
    exchange.failed()
    exchange.end("notified" if silent else "error", said.payload, code=said.code, status=204 if silent else said.status)
    exchange.keep(said.payload)
    recorder.close(exchange)
    payload = None if silent else said.payload
    return Answered(exchange=exchange, wrapping=wrapping, payload=payload, error=error, status=said.status)


def response_to(answered: Answered) -> HttpResponseBase:
    """The HTTP answer of a single call."""
    request_id = answered.exchange.request_id
    if answered.stream is not None:
        headers = stream_headers(answered)
        return StreamingHttpResponse(answered.stream.frames(), content_type="text/event-stream", headers=headers)
    if answered.late is not None:
        return late_response(answered.late.pieces(), request_id, answered.wrapping.media, answered.headers)
    if answered.payload is None:
        return HttpResponse(status=204, headers={"X-Request-ID": request_id} | answered.headers)
    if answered.error is not None:
        media, headers = answered.wrapping.media, answered.headers
        return error_answer(answered.error, answered.payload, request_id, answered.status, media, headers)
    response = answer(answered.payload, request_id, media=answered.wrapping.media, headers=answered.headers)
    release_after(response, answered)
    return response


def late_response(
    pieces: AsyncIterator[bytes], request_id: str, media: str, headers: dict[str, str]
) -> StreamingHttpResponse:
    """Return an answer whose headers go out now. A proxy must pass each space on at once, so it compresses nothing."""
    early = headers_of(request_id, headers) | {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(pieces, content_type=media, headers=early)


def release_after(response: HttpResponseBase, answered: Answered) -> None:
    """Take a large answer out of its caller's account when the response is closed."""
    if answered.weighed:
        response._resource_closers.append(answered.weighed.release)  # type: ignore[attr-defined]  # Django has it


def stream_headers(answered: Answered) -> dict[str, str]:
    """Return the headers of a stream, and those that this answer adds."""
    found = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
    return found | {"X-Request-ID": answered.exchange.request_id} | answered.headers


async def unreadable(request: HttpRequest, exchange: OpenExchange, wrapping: Wrapping, error: Error) -> HttpResponse:
    """Refuse a body that cannot be read: a stranger for want of a key, whatever is wrong with the body besides."""
    try:
        caller = await authenticate(request)
    except (Unauthenticated, Left) as cause:
        return unknown_caller(exchange, wrapping, cause)
    except (DatabaseError, InterfaceError):
        pass  # That the body is wrong can be told without the database.
    else:
        if exchange.row.request_bytes > LARGE:
            await off_loop(exchange.asked_by, caller)
        else:
            exchange.asked_by(caller)
    said = wrapping.tell(error, None, None)
    exchange.end("refused", said.payload, code=said.code, status=said.status)
    exchange.keep(said.payload)
    recorder.close(exchange)
    return answer(said.payload, exchange.request_id, said.status, wrapping.media)


def unknown_caller(exchange: OpenExchange, wrapping: Wrapping, cause: Exception) -> HttpResponse:
    """401 with a challenge, or a fault of ours on the way to it; recorded without the content."""
    if isinstance(cause, Left):
        exchange.end("left", status=None)
        recorder.close(exchange)
        return HttpResponse(status=204)
    error = cause if isinstance(cause, Error) else fault(exchange, cause)
    said = wrapping.tell(error, None, None)
    exchange.end("refused", said.payload, code=said.code, status=said.status)
    recorder.close(exchange)
    return error_answer(error, said.payload, exchange.request_id, said.status, wrapping.media)
