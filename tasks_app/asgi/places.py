"""The places of pages that are made at the same time, on the loop of this process.

Django's own handler takes a thread for each page, and its view often a database connection. Strangers could otherwise
take all that the database has, and so many threads at work that calls wait for the interpreter.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

from a2a.errors import Unavailable
from tasks_app.transports.bodies import Gone
from tasks_app.transports.http import Refusal

Departure = Callable[[], Awaitable[None]]
"""Ends when the client leaves."""

PAGES = 4
"""Pages that are made at the same time. With sixteen at work as many are made in a second as with four, and a call
waits four times as long for the interpreter."""
WAITING, WAITING_SECONDS = 256, 10.0
"""Pages that wait to be made, and how long. Those beyond them, and those that are not begun in time, are refused."""
OF_ADDRESS = 32
"""Pages of one address that wait. A client that asks for more delays others by no more than these."""
TOKENS_OF_ADDRESS = 128
"""Requests of one address to the OAuth server that wait. Many programs may share an address, and begin together."""


class Places:
    """The places of pages of one kind, and those that wait for one."""

    def __init__(self, most_of_address: int) -> None:
        self.most_of_address = most_of_address
        self.loop: asyncio.AbstractEventLoop | None = None
        self.free = asyncio.Semaphore(PAGES)
        self.waiting: Counter[str] = Counter()
        """The pages that wait, by the address that asks for them."""

    async def take(self, address: str, departure: Departure) -> ExitStack:
        """Return a place, which close() gives back. The address is that for limits of strangers, empty for none.

        Raises Refusal: 503, if too many pages wait for one, also of this address alone, or if this one waits for too
        long, as when the database hangs. Raises Gone if the client leaves before.
        """
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self.loop, self.free, self.waiting = loop, asyncio.Semaphore(PAGES), Counter()
        if self.waiting.total() >= WAITING or (address and self.waiting[address] >= self.most_of_address):
            raise _busy()
        self.waiting[address] += 1
        try:
            await self._wait(departure)
        finally:
            self._end_wait(address)
        place = ExitStack()
        place.callback(self.free.release)
        return place

    async def _wait(self, departure: Departure) -> None:
        """Wait until a place is free, and take it. Raises Refusal and Gone."""
        if not self.free.locked():
            await self.free.acquire()
            return
        waiting, leaving = asyncio.ensure_future(self.free.acquire()), asyncio.ensure_future(departure())
        try:
            await asyncio.wait({waiting, leaving}, timeout=WAITING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise Gone if leaving.done() else _busy()
        except BaseException:
            if not waiting.cancel():
                self.free.release()
            raise
        finally:
            leaving.cancel()

    def _end_wait(self, address: str) -> None:
        self.waiting[address] -= 1
        if self.waiting[address] <= 0:
            del self.waiting[address]


def _busy() -> Refusal:
    return Refusal(503, "Too many pages are asked for at once. Try again in a moment.", error=Unavailable())
