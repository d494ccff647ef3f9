"""An answer that is long in coming: a door may begin it early, and give it the payload at last."""

import asyncio
import contextlib
from time import perf_counter

from django.db import InterfaceError, OperationalError

from a2a.answers import Answer, Result
from a2a.documents import Encoded
from a2a.envelopes import Wrapping
from a2a.errors import Error, Unauthenticated
from a2a.language import Language
from tasks_app.callers.accounts import Holding
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, Wait, wait_on
from tasks_app.transports.call import fault
from tasks_app.transports.keys import KEY_SECONDS, is_valid
from tasks_app.transports.streams import size_of_task


class Unfinished(Exception):
    """An answer that has begun cannot be completed, and its client must be able to see that."""


class LateAnswer:
    """The answer to a call that waits for its task."""

    def __init__(
        self, wait: Wait, context: Context, exchange: OpenExchange, language: Language, wrapping: Wrapping,
        key: tuple[str, ...], base: str, held: Holding,
    ) -> None:  # fmt: skip
        self.wait, self.context, self.exchange = wait, context, exchange
        self.language, self.wrapping = language, wrapping
        self.key = key
        """The digests of the caller's key: the wait ends when it is revoked."""
        self.base = base
        """The base URL of links to files."""
        self.held = held
        """Its place in the account."""

    async def payload(self, *, started: bool) -> Encoded:
        """Wait, and return the answer, recorded. An error is an answer too; but where the answer has begun, with the
        status 200, an error of another status raises Unfinished."""
        exchange = self.exchange
        try:
            result = await self._result()
            encode = exchange.encode
            if encode is None:
                raise TypeError("a call that waits has a door, which encodes")
            size = size_of_task(result.task) if isinstance(result, Answer) and result.task else 0
            payload = await off_loop(encode, result) if size > LARGE else encode(result)
            exchange.end("result", payload)
        except asyncio.CancelledError:
            exchange.end("left", status=200 if started else None)
            raise
        except Exception as error:  # noqa: BLE001  # the one catch of calls that wait
            payload = self._failed(error, started=started)
        finally:
            self.held.release()
            recorder.close(exchange)
        large = len(payload) > LARGE
        return await off_loop(with_links, payload, self.base) if large else with_links(payload, self.base)

    async def _result(self) -> Result:
        """Raises the errors of wait_on(), and Unauthenticated once the key is revoked."""
        while True:
            self.context.patience = perf_counter() + KEY_SECONDS
            result = await wait_on(self.wait, self.context)
            # Also before the answer: the key was good seconds ago. While the database is away this look is left out.
            with contextlib.suppress(OperationalError, InterfaceError):
                if not await is_valid(self.key):
                    raise Unauthenticated
            if not isinstance(result, Wait):
                return result

    def _failed(self, cause: Exception, *, started: bool) -> bytes:
        """Return the error as an answer, or raise Unfinished; either is recorded."""
        error = cause if isinstance(cause, Error) else fault(self.exchange, cause)
        failure = self.wrapping.failure(self.language.words(error), self.language)
        # The status is out, and it was 200. A fault of ours must not be taken for the outcome of the task.
        broken = started and (failure.status != 200 or error is not cause)
        self.exchange.end("broken" if broken else "error", b"" if broken else failure.payload, code=failure.code)
        self.exchange.keep(failure.payload)
        if broken:
            raise Unfinished(str(error)) from None
        return failure.payload
