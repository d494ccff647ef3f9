"""The meaning of a call behind every door: its language, its method and its request, read with the caller's rights."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from msgspec import Struct

from a2a.choice import CallError
from a2a.envelopes import Wrapping
from a2a.errors import Error, NotOverTls
from a2a.language import Language, Method, may_stream
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import authorize
from tasks_app.transports.call import Call
from tasks_app.transports.parameters import complete

TLS_ADVICE = "use https or wss; behind a proxy that ends TLS, A2A_TRUST_FORWARDED names its headers"
Selection = tuple[Language, Method, Any]
"""The language, the method and the params of a call."""


class Meaning(Struct):
    """The language and the method of a call, as far as it has been read. Errors are encoded in the language."""

    language: Language | None = None
    method: Method | None = None

    @property
    def error_as_stream(self) -> bool:
        """Whether clients of the language expect the refusal of a stream as a stream."""
        if self.language is None or self.method is None:
            return False
        return self.language.errors_as_stream and self.method.request.streaming


async def read_or_charge(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, select: Callable[[], Selection], meaning: Meaning
) -> tuple[Language, Method, Any]:
    """Return the language, the method and the request of a call, and write the first two into its meaning.

    A call that cannot be read costs a unit, so that a flood of them is limited. A large call is read off the loop.
    Raises CallError, Error, and TooManyCalls.
    """
    read = partial(_read, call, exchange, wrapping, select, meaning)
    try:
        return await off_loop(read) if exchange.row.request_bytes > LARGE else read()
    except (CallError, Error):
        await limits.spend(call.caller, LEAST_COST)
        raise


def _read(
    call: Call, exchange: OpenExchange, wrapping: Wrapping, select: Callable[[], Selection], meaning: Meaning
) -> tuple[Language, Method, Any]:
    exchange.set_caller(call.caller)
    language, method, params = select()
    if method.as_stream is not None and not wrapping.silent and call.takes_stream and may_stream(method, params):
        method = method.as_stream
    meaning.language, meaning.method = language, method
    exchange.row.dialect = language.name
    if language.needs_tls:
        _check_tls(call)
    authorize(method.request, call.caller, language.spelling)
    exchange.is_change = method.request.changes
    return language, method, complete(call, language, method.request, method.decode(params))


def _check_tls(call: Call) -> None:
    """Check that a call came over TLS. Development servers listen on loopback only. Raises NotOverTls."""
    if not (settings.DEVELOPMENT or settings.DEBUG or call.is_secure()):
        raise NotOverTls(detail=f"calls in this language must come over TLS: {TLS_ADVICE}")
