"""Calls that no operation performs: of strangers, with bodies that cannot be read, and of callers who have left."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from django.db import DatabaseError, InterfaceError

from a2a.envelopes import Failure, Wrapping
from a2a.errors import Error, TooManyCalls, Unauthenticated
from a2a.language import Language, Method
from tasks_app.audit.refused_calls import COUNTED, refused_calls
from tasks_app.callers.schemes import token_url
from tasks_app.callers.scopes import scopes_of
from tasks_app.database.errors import Busy
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.refusals import close_refused
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import OPERATIONS, CallerLeft
from tasks_app.transports.call import Call, Reply, early_failure
from tasks_app.transports.error_log import log_refusal
from tasks_app.transports.faults import fault

EarlyChoice = tuple[Language, Sequence[Method]]
"""The language of calls without a caller, and their methods."""


def leave(exchange: OpenExchange, wrapping: Wrapping) -> Reply:
    """Record a call whose caller has left. A change may or may not have begun."""
    exchange.fail()
    exchange.end("left", status=None)
    recorder.close(exchange)
    return Reply(request_id=exchange.request_id, wrapping=wrapping)


async def take_back_own_cancellation(call: Call) -> bool:
    """Take back the cancellation of a call that an agent inside the call has ordered, as a callback of its own can.

    Return False, and leave it as it is, if the caller has left, at a door that cannot tell, or when the server ends.
    """
    task = asyncio.current_task()
    if readers.draining or call.departure is None or task is None:
        return False
    leaving = asyncio.ensure_future(call.departure())
    has_left, _ = await asyncio.wait({leaving}, timeout=0)
    leaving.cancel()
    if not has_left:
        task.uncancel()
    return not has_left


async def refuse_unreadable(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, error: Error, methods: Iterable[str] = ()
) -> Reply:
    """Refuse a body that cannot be read.

    A caller without a valid key is refused for the key instead, and one beyond its rate limit for the limit.

    `methods` are those of its calls, as far as they can be read.
    """
    pin, turn = None, None
    if call.connection is not None:
        # A body that cannot be read makes no connection a known one. The caller of a large body was identified before.
        call.connection.is_known, call.connection = False, None
    try:
        await call.identify()
        exchange.name_caller(call.caller)
        with suppress(Busy):  # Then it is refused without a turn, for the same error.
            turn = await call.take_turn()
    except (Unauthenticated, TooManyCalls, CallerLeft) as cause:
        language = call.endpoint.early(methods)
        return refuse_stranger(exchange, wrapping, cause, (language, ()) if language else None)
    except (DatabaseError, InterfaceError):
        pass  # The error in the body can be reported without the database.
    else:
        pin = call.caller.language
        if exchange.row.request_bytes > LARGE:
            await off_loop(exchange.set_caller, call.caller)
        else:
            exchange.set_caller(call.caller)
        error = await _charge(call, error)
    finally:
        if turn is not None:
            turn.end()
    failure = early_failure(exchange, wrapping, error, call.endpoint.early(methods, pin))
    exchange.keep(failure.payload)
    return _refuse(exchange, wrapping, error, failure)


async def _charge(call: Call, error: Error) -> Error:
    """Charge the caller for a call that cannot be read. Return the error of the call, or that of the rate limit."""
    try:
        await limits.spend(call.caller, LEAST_COST)
    except TooManyCalls as limit:
        error = limit
    if isinstance(error, COUNTED):
        refused_calls.count(call.caller, error.reason, call.peer)
    return error


def refuse_stranger(
    exchange: OpenExchange, wrapping: Wrapping, cause: Exception, choice: EarlyChoice | None = None
) -> Reply:
    """Refuse a call without a caller, or whose caller could not be looked up. It is recorded without its content.

    Floods are refused in the neutral language, in which floods.py refuses them without an exchange too.
    """
    if isinstance(cause, CallerLeft):
        return leave(exchange, wrapping)
    error = cause if isinstance(cause, Error) else fault(exchange, cause)
    if choice is None or isinstance(error, TooManyCalls):
        return _refuse(exchange, wrapping, error, wrapping.failure(error))
    language, methods = choice
    if isinstance(error, Unauthenticated):
        explain(error, language, methods)
    return _refuse(exchange, wrapping, error, early_failure(exchange, wrapping, error, language))


def explain(error: Unauthenticated, language: Language, methods: Sequence[Method]) -> None:
    """Add the scopes of the methods to the facts of a stranger's error, and the address at which tokens are issued."""
    rights = (None, *(OPERATIONS[method.request].right for method in methods))
    scopes = (scope for right in rights for scope in scopes_of(right, language.spelling))
    error.facts["required"] = " ".join(dict.fromkeys(scopes))
    if url := token_url():
        error.facts["tokenUrl"] = url


def _refuse(exchange: OpenExchange, wrapping: Wrapping, error: Error, failure: Failure) -> Reply:
    exchange.end("refused", failure.payload, code=failure.code, status=failure.status)
    log_refusal(exchange, error, failure.status)
    close_refused(exchange, failure.status)
    return Reply(
        request_id=exchange.request_id, wrapping=wrapping, payload=failure.payload, error=error, status=failure.status
    )
