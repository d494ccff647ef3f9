"""The path of a call behind every door: understood, performed, encoded and recorded, with one catch for all errors."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import Answer, Result, TaskPage
from a2a.choice import CallError
from a2a.documents import Encoded, Pieces, TaskDocument, enclose
from a2a.envelopes import Failure, Wrapping
from a2a.errors import Error, InvalidRequest, Unauthenticated
from a2a.files import MARK
from a2a.language import Language, Method
from a2a.requests import GetExtendedCard, Request, SendMessage, with_delivery_language
from tasks_app.callers.access import Caller, digests
from tasks_app.callers.accounts import Holding, account
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, Follow, Left, Wait, authorize, perform, wait_on
from tasks_app.transports.call import Call, Reply, fault
from tasks_app.transports.streams import Stream, size_of_task
from tasks_app.transports.waiting import LateAnswer

Understood = tuple[Language, Method, Any]
"""The language, the method and the params of a call."""


class Meaning(Struct):
    """A call as far as it was understood: an error is told in its language."""

    language: Language | None = None
    method: Method | None = None

    @property
    def error_as_stream(self) -> bool:
        """Return whether clients of the language expect the refusal of a stream to be a stream."""
        if self.language is None or self.method is None:
            return False
        return self.language.errors_as_stream and self.method.request.streaming


async def handle(call: Call, exchange: OpenExchange, wrapping: Wrapping, understand: Callable[[], Understood]) -> Reply:
    """Perform and record a call. Raises nothing but CancelledError: this is the one catch of the doors."""
    meaning = Meaning()
    context = Context(caller=call.caller, exchange=exchange, agent=call.agent, left=call.left, patience=0.0)
    try:
        read = partial(_read, call, exchange, understand, meaning)
        language, method, request = await off_loop(read) if exchange.row.request_bytes > LARGE else read()
        head, tail = wrapping.head, wrapping.tail
        exchange.encode = lambda result: enclose(head, method.encode(result), tail)
        # Before the work: what is accepted is not refused for want of a stream.
        held = account.hold(call.caller.owner_id, "streams") if method.request.streaming else None
        # The member of a batch waits in the answer of all, and a notification has none.
        result, weighed = await _performed(
            request, context, held, exchange.start, waits=not (call.batch or wrapping.silent)
        )
        if isinstance(result, Follow):
            followed = _followed(call, exchange, wrapping, result, language, held, weighed)
            return replace(followed, headers=language.headers(context.extensions))
        if isinstance(result, Wait):
            return _waiting(call, exchange, wrapping, result, language, context)
        counts = not method.request.changes and not wrapping.silent
        payload, weighed = await _encoded(call, exchange, result, counts=counts)
    except Left:
        return _left(exchange, wrapping)
    except asyncio.CancelledError:
        _left(exchange, wrapping)
        raise
    except CallError as refused:
        return _failed(exchange, wrapping, refused.error, refused.language, context)
    except Error as error:
        told = meaning.language.words(error) if meaning.language else error
        failed = _failed(exchange, wrapping, told, meaning.language, context)
        return replace(failed, error_as_stream=meaning.error_as_stream)
    except Exception as error:  # noqa: BLE001  # the doors' one catch; logged with its reference
        return _failed(exchange, wrapping, fault(exchange, error), meaning.language, context)
    headers = language.headers(context.extensions)
    return await _reply_with(call, exchange, wrapping, result, payload, weighed, headers)


def _left(exchange: OpenExchange, wrapping: Wrapping) -> Reply:
    """Record a call whose caller has left."""
    # A change that it asked for may have been begun or not.
    exchange.fail()
    exchange.end("left", status=None)
    recorder.close(exchange)
    return Reply(request_id=exchange.request_id, wrapping=wrapping)


async def _reply_with(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, result: Result, payload: Encoded,
    weighed: Holding | None, headers: dict[str, str],
) -> Reply:  # fmt: skip
    """Record the result of a call; a notification is not answered."""
    if exchange.answer is None or wrapping.silent:
        exchange.answer = None
        exchange.end("notified" if wrapping.silent else "result", payload, status=204 if wrapping.silent else 200)
        await _keep(exchange, payload, result, wrapping)
    recorder.close(exchange)
    shown = None if wrapping.silent else await _linked(payload, call)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, payload=shown, headers=headers, holding=weighed)


async def _linked(payload: Encoded, call: Call) -> Encoded:
    """Return the payload with links to its files."""
    return await off_loop(_with_links, payload, call) if len(payload) > LARGE else _with_links(payload, call)


def _with_links(payload: Encoded, call: Call) -> Encoded:
    return with_links(payload, call.address()) if isinstance(payload, Pieces) or MARK in payload else payload


async def _encoded(
    call: Call, exchange: OpenExchange, result: Result, *, counts: bool
) -> tuple[Encoded, Holding | None]:
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


async def _keep(exchange: OpenExchange, payload: Encoded, result: Result, wrapping: Wrapping) -> None:
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
    call: Call, exchange: OpenExchange, understand: Callable[[], Understood], meaning: Meaning
) -> tuple[Language, Method, Any]:
    """Return the language, the method and the request. For a large call this runs off the loop."""
    exchange.set_caller(call.caller)
    language, method, params = understand()
    meaning.language, meaning.method = language, method
    exchange.row.dialect = language.name
    authorize(method.request, call.caller)
    return language, method, _request(call, language, method.request, method.decode(params))


def _request(call: Call, language: Language, kind: type[Request], request: Any) -> Any:
    """Complete a request by what came beside its params. Raises InvalidRequest."""
    if kind.streaming and call.batch:
        raise InvalidRequest(detail="a method that streams cannot be a member of a batch")
    if issubclass(kind, SendMessage) and (extensions := language.extensions(call.metadata)):
        request = replace(request, extensions=extensions)
    if kind.changes and language.push:
        request = with_delivery_language(language.pushes_as or language.name, request)
    if kind.streaming:
        return replace(request, after=call.after)
    if isinstance(request, GetExtendedCard):
        return replace(request, address=call.address())
    return request


async def _performed(
    request: Request, context: Context, held: Holding | None, began: float, *, waits: bool
) -> tuple[Result | Follow | Wait, Holding | None]:
    """Return what came of it, and of a stream that only reads what its large beginning holds of the account. Where it
    waits, it does so until its headers are due. Raises the errors of perform()."""
    try:
        result = await perform(request, context)
        if isinstance(result, Wait) and waits:
            context.patience = began + settings.A2A_PING_SECONDS
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
    call: Call, exchange: OpenExchange, wrapping: Wrapping, follow: Follow, language: Language,
    held: Holding | None, weighed: Holding | None,
) -> Reply:  # fmt: skip
    if wrapping.silent:
        # The work is done, and nobody hears of it (docs/protocol.md#envelope).
        exchange.end("notified", status=204)
        recorder.close(exchange)
        return Reply(request_id=exchange.request_id, wrapping=wrapping)
    if not exchange.is_written:
        recorder.open(exchange)
    stream = Stream(follow, language, wrapping, exchange, digests(call.key), call.address(), held, weighed)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, stream=stream)


def _waiting(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, wait: Wait, language: Language, context: Context
) -> Reply:
    """Keep what the answer of a call needs, and nothing else of it. Raises RateLimited and Unavailable."""
    headers = language.headers(context.extensions)
    if wrapping.silent:
        exchange.end("notified", status=204)
        recorder.close(exchange)
        return Reply(request_id=exchange.request_id, wrapping=wrapping, headers=headers)
    held = account.hold(call.caller.owner_id, "waits")
    if not exchange.is_written:
        recorder.open(exchange)
    exchange.lighten()
    # From here on the door that sends the answer notices that the client has left, and cancels the wait.
    context.left = None
    late = LateAnswer(wait, context, exchange, language, wrapping, digests(call.key), call.address(), held)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, late=late, headers=headers)


def _failed(
    exchange: OpenExchange, wrapping: Wrapping, error: Error, language: Language | None, context: Context
) -> Reply:
    """Tell an error in the language, if one is chosen; a notification is not answered."""
    # What the error passed through may hold a large answer, and would live until garbage is collected.
    error.__traceback__ = None
    failure, silent = wrapping.failure(error, language), wrapping.silent
    exchange.fail()
    outcome, status = ("notified", 204) if silent else ("error", failure.status)
    exchange.end(outcome, failure.payload, code=failure.code, status=status)
    exchange.keep(failure.payload)
    recorder.close(exchange)
    return Reply(
        request_id=exchange.request_id,
        wrapping=wrapping,
        payload=None if silent else failure.payload,
        error=error,
        status=failure.status,
        headers=language.headers(context.extensions) if language else {},
    )


async def unreadable(call: Call, exchange: OpenExchange, wrapping: Wrapping, error: Error) -> Reply:
    """Refuse a body that cannot be read: a stranger for want of a key, whatever is wrong with the body besides."""
    try:
        await call.identify()
    except (Unauthenticated, Left) as cause:
        return unidentified(exchange, wrapping, cause)
    except (DatabaseError, InterfaceError):
        pass  # That the body is wrong can be told without the database.
    else:
        if exchange.row.request_bytes > LARGE:
            await off_loop(exchange.set_caller, call.caller)
        else:
            exchange.set_caller(call.caller)
    failure = wrapping.failure(error)
    exchange.keep(failure.payload)
    return _refused(exchange, wrapping, error, failure)


def unidentified(exchange: OpenExchange, wrapping: Wrapping, cause: Exception) -> Reply:
    """Refuse a call whose caller is not known, or could not be looked up; it is recorded without its content."""
    if isinstance(cause, Left):
        exchange.end("left", status=None)
        recorder.close(exchange)
        return Reply(request_id=exchange.request_id, wrapping=wrapping)
    error = cause if isinstance(cause, Error) else fault(exchange, cause)
    return _refused(exchange, wrapping, error, wrapping.failure(error))


def _refused(exchange: OpenExchange, wrapping: Wrapping, error: Error, failure: Failure) -> Reply:
    exchange.end("refused", failure.payload, code=failure.code, status=failure.status)
    recorder.close(exchange)
    return Reply(
        request_id=exchange.request_id, wrapping=wrapping, payload=failure.payload, error=error, status=failure.status
    )
