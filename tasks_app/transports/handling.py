"""The path of a call behind every door: it is read, performed, encoded and recorded, with one catch for all errors."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import orjson
from django.conf import settings
from msgspec.structs import replace

from a2a.answers import Result
from a2a.choice import CallError
from a2a.documents import TaskDocument
from a2a.envelopes import Wrapping
from a2a.errors import Error
from a2a.language import Language, Method
from a2a.requests import Request
from a2a.shared_streams import SharedStreamDocument
from a2a.types import Json
from tasks_app.audit.refused_calls import COUNTED, refused_calls
from tasks_app.database.errors import Busy
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import Holding, account
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.off_loop import LARGE
from tasks_app.operations import OPERATIONS, CallerLeft, Context, Follow, Wait, cost_of, perform, wait_on
from tasks_app.runner.stopped import exception_of
from tasks_app.transports.answers import Answered, answer, enclose_result, encode_whole, weigh
from tasks_app.transports.call import Call, Reply, date
from tasks_app.transports.chunk_streams import ChunkStream
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.error_log import log_error
from tasks_app.transports.faults import fault
from tasks_app.transports.meaning import Meaning, Selection, read_or_charge
from tasks_app.transports.page_room import PageRoom
from tasks_app.transports.refusing import leave, take_back_own_cancellation
from tasks_app.transports.streams import Stream
from tasks_app.transports.waiting import LateAnswer, wait_for_outcome


async def handle(call: Call, exchange: OpenExchange, wrapping: Wrapping, select: Callable[[], Selection]) -> Reply:
    """Perform and record a call. Raises nothing but CancelledError: this is the one catch of the doors.

    A call over HTTP is refused when the server ends before it is performed.

    `select` returns the language, the method and the params. It may raise errors, and CallError.
    """
    context = Context(
        caller=call.caller,
        exchange=exchange,
        agent=call.agent,
        departure=call.departure,
        patience=0.0,
        counts_answer=not wrapping.silent,
        counts_small=call.batch or call.on_socket,
        waits_for_room=not call.batch,
        request_weight=0 if call.batch or exchange.request_bytes <= LARGE else exchange.request_bytes,
    )
    try:
        return await _perform_and_answer(call, exchange, wrapping, select, Meaning(), context)
    finally:
        context.end_turn()


async def _perform_and_answer(
    call: Call,
    exchange: OpenExchange,
    wrapping: Wrapping,
    select: Callable[[], Selection],
    meaning: Meaning,
    context: Context,
) -> Reply:
    try:
        done = await _work(call, exchange, wrapping, select, meaning, context)
    except CallerLeft:
        context.release()  # The traceback of the error has the context, until garbage is collected.
        return leave(exchange, wrapping)
    except asyncio.CancelledError as cancellation:
        error: Error | None = take_back_cancellation() if call.has_status else None
        if error is None and await take_back_own_cancellation(call):
            error = fault(exchange, exception_of(cancellation))
        if error is None:
            context.release()
            leave(exchange, wrapping)
            raise
        return _fail(exchange, wrapping, error, meaning.language, context)
    except CallError as error:
        exchange.row.dialect = error.language.name if error.language else ""
        _count(call, exchange, error.error)
        return _fail(exchange, wrapping, error.error, error.language, context)
    except Error as error:
        _count(call, exchange, error)
        reworded = meaning.language.reword(error, meaning.method) if meaning.language else error
        reply = _fail(exchange, wrapping, reworded, meaning.language, context)
        return replace(reply, error_as_stream=meaning.error_as_stream)
    except Exception as error:  # noqa: BLE001  # the doors' one catch; logged with its reference
        return _fail(exchange, wrapping, fault(exchange, error), meaning.language, context)
    return done if isinstance(done, Reply) else await answer(call, exchange, wrapping, done)


async def _work(
    call: Call,
    exchange: OpenExchange,
    wrapping: Wrapping,
    select: Callable[[], Selection],
    meaning: Meaning,
    context: Context,
) -> Reply | Answered:
    """Read and perform a call. Return its reply, or its whole answer. Raises what `handle` catches."""
    no_turn: Busy | None = None
    exchange.name_caller(call.caller)
    try:
        context.turn = await call.take_turn()
    except Busy as busy:
        no_turn = busy  # The call is read all the same, because it is refused in its language.
    language, method, request = await read_or_charge(call, exchange, wrapping, select, meaning)
    if no_turn is not None:
        raise no_turn
    if not limits.pay(call.caller, cost := cost_of(method.request)):
        await limits.spend(call.caller, cost)
    if method.request.changes:
        account.check_bodies(call.caller.owner_id)
    encode = partial(enclose_result, wrapping, method)
    # An answer that may turn out to be an error is not stored with the change.
    exchange.encode = None if language.refusal else encode
    context.spelling = language.spelling
    # The stream is taken from the account before the work, so that no accepted work lacks one.
    stream = account.hold(call.caller.owner_id, "streams") if method.request.streaming else None
    # A member of a batch waits in the answer of the whole batch, and a notification has no answer.
    may_wait = not (call.batch or wrapping.silent)
    result, weight = await _perform(request, context, stream, exchange.start, may_wait=may_wait)
    if isinstance(result, Wait) and language.refusal and may_wait:
        result = await _settle(call, result, language, method, context)
    if isinstance(result, Follow):
        return _follow(call, exchange, wrapping, result, language, method, context, stream, weight)
    exchange.encode = encode
    if isinstance(result, Wait):
        return _defer(call, exchange, wrapping, result, language, method, context)
    if language.refusal and (error := language.refusal(result)):
        return _tell_error(exchange, wrapping, error, language, context)
    payload, weight = await encode_whole(context, exchange, result, is_owed=method.request.changes)
    return Answered(result, payload, weight, _headers(language, context))


async def handle_own(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, work: Callable[[], Awaitable[Json]], *, changes: bool = True
) -> Reply:
    """Perform and record a call of a door's own, which is in no language. Raises nothing but CancelledError.

    `work` returns the answer, and may raise the errors of a2a/errors.py. `changes` says whether it changes stored data.
    """
    context = Context(caller=call.caller, exchange=exchange)
    exchange.name_caller(call.caller)
    try:
        context.turn = await call.take_turn()
        exchange.set_caller(call.caller)
        await limits.spend(call.caller, LEAST_COST)
        exchange.is_change = changes
        payload = wrapping.head + orjson.dumps(await work()) + wrapping.tail
    except CallerLeft:
        return leave(exchange, wrapping)
    except asyncio.CancelledError:
        if (error := take_back_cancellation()) is None:
            leave(exchange, wrapping)
            raise
        return _fail(exchange, wrapping, error, None, context)
    except Error as error:
        _count(call, exchange, error)
        return _fail(exchange, wrapping, error, None, context)
    except Exception as error:  # noqa: BLE001  # a door's one catch; logged with its reference
        return _fail(exchange, wrapping, fault(exchange, error), None, context)
    finally:
        context.end_turn()
    silent = wrapping.silent
    exchange.end("notified" if silent else "result", payload, status=204 if silent else 200)
    exchange.keep(payload)
    recorder.close(exchange)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, payload=None if silent else payload)


async def _perform(
    request: Request, context: Context, stream: Holding | None, start: float, *, may_wait: bool
) -> tuple[Result | Follow | Wait, Holding | None]:
    """Return the result, and for a stream the bytes of its first frame in the account, if they count.

    A call that may wait does so until its headers are due. Raises the errors of perform().
    """
    try:
        result = await perform(request, context)
        if isinstance(result, Wait):
            context.end_turn()
            context.release()  # The answer is read once the task has ended, and may be another size then.
        if isinstance(result, Wait) and may_wait:
            context.patience = start + settings.A2A_PING_SECONDS
            result = await wait_on(result, context)
        if isinstance(result, Follow):
            size = result.first.size if isinstance(result.first, TaskDocument) else 0
            return result, weigh(context, size, is_owed=request.changes)
        return result, None
    except BaseException:
        # The stream is given back here: an error keeps its traceback alive until garbage is collected.
        if stream:
            stream.release()
        raise


def _follow(
    call: Call,
    exchange: OpenExchange,
    wrapping: Wrapping,
    follow: Follow,
    language: Language,
    method: Method,
    context: Context,
    stream: Holding | None,
    weight: Holding | None,
) -> Reply:
    """Return a reply with a stream."""
    if wrapping.silent:
        return _end_silently(exchange, wrapping, language, context)
    recorder.open(exchange)
    again = call.check_again(OPERATIONS[method.request].right, language.spelling)
    ends = call.caller.expires_at
    kind = ChunkStream if isinstance(follow.first, SharedStreamDocument) else Stream
    context.departure, context.waits_for_room = None, True
    room, base = PageRoom(context), call.address()
    reader = kind(follow, language, wrapping, exchange, room, again, base, stream, weight, call.until, ends)
    headers = _headers(language, context)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, stream=reader, headers=headers)


def _defer(
    call: Call,
    exchange: OpenExchange,
    wrapping: Wrapping,
    wait: Wait,
    language: Language,
    method: Method,
    context: Context,
) -> Reply:
    """Return a reply with a late answer, which keeps only what it needs. Raises RateLimited and Unavailable."""
    if wrapping.silent:
        return _end_silently(exchange, wrapping, language, context)
    holding = account.hold(call.caller.owner_id, "waits")
    recorder.open(exchange)
    # From here on the door that sends the answer notices when the client leaves, and cancels the wait.
    context.departure = None
    context.request_weight = 0  # The door gives the request back before it sends the answer.
    again = call.check_again(OPERATIONS[method.request].right, language.spelling)
    ends = call.caller.expires_at
    late = LateAnswer(wait, context, exchange, language, wrapping, again, call.address(), holding, ends)
    headers = _headers(language, context)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, late=late, headers=headers)


async def _settle(call: Call, wait: Wait, language: Language, method: Method, context: Context) -> Result:
    """Wait for the outcome before anything is answered. Raises the errors of wait_for_outcome(), and RateLimited and
    Unavailable."""
    holding = account.hold(call.caller.owner_id, "waits")
    again = call.check_again(OPERATIONS[method.request].right, language.spelling)
    try:
        return await wait_for_outcome(wait, context, again, call.caller.expires_at)
    finally:
        holding.release()


def _count(call: Call, exchange: OpenExchange, error: Error) -> None:
    """Count a refusal. Other errors of a change get an entry of the audit."""
    if isinstance(error, COUNTED):
        refused_calls.count(call.caller, error.reason, call.peer)
        exchange.is_change = exchange.has_begun


def _end_silently(exchange: OpenExchange, wrapping: Wrapping, language: Language, context: Context) -> Reply:
    """Record a notification, which has no answer (docs/protocol.md#envelope). Its work is done, or goes on."""
    exchange.end("notified", status=204)
    recorder.close(exchange)
    headers = _headers(language, context)
    return Reply(request_id=exchange.request_id, wrapping=wrapping, headers=headers)


def _headers(language: Language | None, context: Context) -> dict[str, str]:
    """Return the headers of an answer in the language; none if no language is chosen."""
    if language is None:
        return {}
    headers = language.headers(context.extensions)
    return (
        headers | {language.agent_header: context.agent_name}
        if context.agent_name and language.agent_header
        else headers
    )


def _fail(
    exchange: OpenExchange, wrapping: Wrapping, error: Error, language: Language | None, context: Context
) -> Reply:
    """Record an error, and return the reply, in the language if one is chosen. It is empty for a notification."""
    # The frames of the traceback may hold a large answer, which would live until garbage is collected.
    error.__traceback__ = None
    exchange.fail()
    return _tell_error(exchange, wrapping, error, language, context)


def _tell_error(
    exchange: OpenExchange, wrapping: Wrapping, error: Error, language: Language | None, context: Context
) -> Reply:
    """Record an error as the answer to a call, whatever the call has changed, and return the reply."""
    context.release()
    if language and language.dates_errors:
        date(error)
    failure, silent = wrapping.failure(error, language), wrapping.silent
    outcome, status = ("notified", 204) if silent else ("error", failure.status)
    exchange.end(outcome, failure.payload, code=failure.code, status=status)
    log_error(exchange, error)
    exchange.keep(failure.payload)
    recorder.close(exchange)
    return Reply(
        request_id=exchange.request_id,
        wrapping=wrapping,
        payload=None if silent else failure.payload,
        error=error,
        status=failure.status,
        headers=_headers(language, context),
    )
