"""An answer that is long in coming: its headers go out early, then a space again and again, which JSON allows before a
value (RFC 8259, section 2), and at last the answer. So neither a proxy nor a client gives up.

A fault can then be no status any more. It ends the connection before the answer is complete: the client sees that, and
sends its message again with the id it has.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from time import perf_counter

from django.conf import settings
from django.db import InterfaceError, OperationalError

from a2a.answers import Answer, Result
from a2a.errors import Error, Unauthenticated
from a2a.files import MARK
from a2a.language import Dialect
from tasks_app.callers.access import FindCaller
from tasks_app.callers.account import Holding
from tasks_app.database.bridge import bridge
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, Wait, wait_on
from tasks_app.transports.http import KEY_SECONDS, Unfinished, fault
from tasks_app.transports.streams import size_of_task
from tasks_app.transports.wrapping import Wrapping

SPACE = b" "


class LateAnswer:
    """The answer to a call that waits for its task."""

    def __init__(
        self, wait: Wait, context: Context, exchange: OpenExchange, dialect: Dialect, wrapping: Wrapping,
        key: tuple[str, ...], base: str, held: Holding,
    ) -> None:  # fmt: skip
        self.wait, self.context, self.exchange = wait, context, exchange
        self.dialect, self.wrapping = dialect, wrapping
        self.key = key
        """The digests of the caller's key: the wait ends when it is revoked."""
        self.base = base
        """The base URL of links to files."""
        self.held = held
        """Its place in the account."""

    def pieces(self) -> AsyncIterator[bytes]:
        """Return the bytes of a single call's answer. Iterating raises Unfinished."""
        return spaced(partial(self.payload, started=True))

    async def payload(self, *, started: bool) -> bytes:
        """Wait, and return the answer, recorded. An error that the door still has a place for is an answer too; where
        the headers are out already, any other raises Unfinished."""
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
        except Exception as error:  # noqa: BLE001  # the doors' one catch, where their headers are out already
            payload = self._failed(error, started=started)
        finally:
            self.held.release()
            recorder.close(exchange)
        return with_links(payload, self.base) if MARK in payload else payload

    async def _result(self) -> Result:
        """Raises the errors of wait_on(), and Unauthenticated once the key is revoked."""
        while True:
            self.context.patience = perf_counter() + KEY_SECONDS
            result = await wait_on(self.wait, self.context)
            # Also before the answer: the key was good seconds ago. While the database is away this look is left out.
            with contextlib.suppress(OperationalError, InterfaceError):
                if await bridge.ask(FindCaller(self.key)) is None:
                    raise Unauthenticated
            if not isinstance(result, Wait):
                return result

    def _failed(self, cause: Exception, *, started: bool) -> bytes:
        """Return the error as an answer, or raise Unfinished; either is recorded."""
        error = cause if isinstance(cause, Error) else fault(self.exchange, cause)
        said = self.wrapping.tell(self.dialect.words(error), self.dialect, None)
        # The status is out, and it was 200. A fault of ours must not be taken for the outcome of the task.
        broken = started and (said.status != 200 or error is not cause)
        self.exchange.end("broken" if broken else "error", b"" if broken else said.payload, code=said.code)
        self.exchange.keep(said.payload)
        if broken:
            raise Unfinished(str(error)) from None
        return said.payload


async def spaced(begin: Callable[[], Awaitable[bytes]]) -> AsyncIterator[bytes]:
    """Yield a space, another after each silence, and what comes of the work. The work ends with the iteration."""
    work = asyncio.ensure_future(begin())
    try:
        yield SPACE
        while not (await asyncio.wait({work}, timeout=settings.A2A_PING_SECONDS))[0]:
            yield SPACE
        yield work.result()
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, Unfinished):
            await work
