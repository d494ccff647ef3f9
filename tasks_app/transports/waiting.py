"""A late answer: a call waits for its task, and a door may begin the answer before the payload is there."""

import asyncio
import contextlib
from time import perf_counter

from a2a.answers import Result, size_of
from a2a.documents import Encoded
from a2a.envelopes import Wrapping
from a2a.errors import Error, InvalidKey
from a2a.language import Language
from tasks_app.database.errors import MAY_PASS
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.limits.accounts import Holding
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, Wait, wait_on
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.error_log import log_error
from tasks_app.transports.faults import fault
from tasks_app.transports.keys import KEY_SECONDS, CheckAgain, has_ended, rest_of


class Unfinished(Exception):
    """An answer that has begun cannot be completed, and its client must be able to see that."""


class LateAnswer:
    """The answer to a call that waits for its task."""

    def __init__(
        self,
        wait: Wait,
        context: Context,
        exchange: OpenExchange,
        language: Language,
        wrapping: Wrapping,
        check_again: CheckAgain,
        base: str,
        holding: Holding,
        expires_at: float | None = None,
    ) -> None:
        self.wait, self.context, self.exchange = wait, context, exchange
        self.language, self.wrapping = language, wrapping
        self.check_again = check_again
        """Checks the caller again. The wait ends when its credential or its scope does."""
        self.base = base
        """The base URL of links to files."""
        self.holding = holding
        """The wait in the account of its caller."""
        self.expires_at = expires_at
        """The time at which the credential of the caller ends, in seconds since 1970; None if it does not."""

    async def payload(self, *, early: bool) -> Encoded:
        """Wait for the task, record the answer, and return it; an error is an answer too.

        `early` says that the answer has begun, with the status 200. Then an error of another status raises
        Unfinished.
        """
        exchange = self.exchange
        try:
            result = await wait_for_outcome(self.wait, self.context, self.check_again, self.expires_at)
            encode = exchange.encode
            if encode is None:
                raise TypeError("the exchange of a call that waits needs its encode, which handle() sets")
            payload = await off_loop(encode, result) if size_of(result) > LARGE else encode(result)
            if self.context.weight is not None:
                self.context.weight.measure(len(payload))
            exchange.end("result", payload)
        except asyncio.CancelledError:
            # A member of a batch over HTTP is refused when the server ends.
            refusal = take_back_cancellation() if exchange.has_status and not early else None
            if refusal is None:
                exchange.end("left", status=200 if early else None)
                raise
            payload = self._fail(refusal, early=early)
        except Exception as error:  # noqa: BLE001  # the one catch of calls that wait
            payload = self._fail(error, early=early)
        finally:
            self.holding.release()
            recorder.close(exchange)
        large = len(payload) > LARGE
        return await off_loop(with_links, payload, self.base) if large else with_links(payload, self.base)

    def take_weight(self) -> Holding | None:
        """Return the bytes of the answer in the account, which the caller gives back from then on."""
        weight, self.context.weight = self.context.weight, None
        return weight

    def release(self) -> None:
        """Give the bytes of the answer back, once they are sent, or cannot be sent."""
        self.context.release()

    def _fail(self, cause: Exception, *, early: bool) -> bytes:
        """Record an error, and return it as an answer or raise Unfinished."""
        self.release()
        error = cause if isinstance(cause, Error) else fault(self.exchange, cause)
        failure = self.wrapping.failure(self.language.words(error), self.language)
        log_error(self.exchange, error)
        # The client has the status 200 already. It must not take a fault of the server for the outcome of the task.
        broken = early and (failure.status != 200 or error is not cause)
        self.exchange.end("broken" if broken else "error", b"" if broken else failure.payload, code=failure.code)
        self.exchange.keep(failure.payload)
        if broken:
            raise Unfinished(str(error)) from None
        return failure.payload


async def wait_for_outcome(wait: Wait, context: Context, check_again: CheckAgain, expires_at: float | None) -> Result:
    """Return the result of a wait. Raises the errors of wait_on(), and those of `check_again` when the key has ended.

    `expires_at` is the time at which the credential of the caller ends. It needs no check, so it holds while the
    database is away too.
    """
    while True:
        context.patience = perf_counter() + rest_of(expires_at, KEY_SECONDS)
        result = await wait_on(wait, context)
        if has_ended(expires_at):
            raise InvalidKey
        # The key is checked before an answer too, because the last check was seconds ago. While the database is away
        # the check is left out.
        with contextlib.suppress(*MAY_PASS):
            await check_again()
        if not isinstance(result, Wait):
            return result
