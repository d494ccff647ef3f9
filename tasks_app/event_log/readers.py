"""Followers of tasks in this process: one table of waiting readers, woken by hints, with one poll for all of them.

A reader owns nothing but a cursor. It looks at the log, and when there is nothing new it waits for a hint, or for the
poll that finds what hints missed (another process, a lost message).
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator

from django.conf import settings

from a2a.documents import EventDocument
from a2a.states import QUIET
from tasks_app.database.bridge import bridge
from tasks_app.event_log import LastEvents, ReadEvents
from tasks_app.hints import Reached, hints

log = logging.getLogger(__name__)
REMEMBERED = 2_000
"""Tasks of which it is known for a while that they became quiet."""
POLLED = 500
"""Tasks asked about in one statement of the poll."""


class Reader:
    """A cursor in the log of one task."""

    def __init__(self, task_id: str, context_id: str, after: int) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.cursor = after
        self.known = after
        """The last event known to exist."""
        self.state: str | None = None
        """The last state heard of."""
        self.left = False
        """Who waits here has left."""
        self.woken = asyncio.Event()

    def leave(self) -> None:
        """Ends the waiting."""
        self.left = True
        self.woken.set()

    def wake(self, news: Reached) -> None:
        """Older news may come later: a poll that was asked before a hint, or hints that overtook each other."""
        if news.seq >= self.known:
            self.known = news.seq
            self.state = news.state or self.state
        self.woken.set()

    async def page(self) -> list[EventDocument]:
        """The next events, at once; none when the log has no more."""
        wish = ReadEvents(task_id=self.task_id, after=self.cursor, context_id=self.context_id)
        known = self.known
        events = await bridge.ask(wish, settings.A2A_LEASE_SECONDS)
        if not events and self.known == known:
            self.known = self.cursor  # A hint of what is not there: waiting for it would spin.
        if events:
            self.cursor = events[-1].seq
            self.known = max(self.known, self.cursor)
        return events

    async def news(self, seconds: float) -> bool:
        """Waits until there is something after the cursor; False when the time is up or the readers are told to go."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.known <= self.cursor and not readers.draining:
                    self.woken.clear()
                    await self.woken.wait()
        return self.known > self.cursor

    async def quiet(self, seconds: float) -> bool:
        """Waits until nobody works on the task any more; False when the time is up before."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not ((self.state in QUIET and self.known > self.cursor) or self.left or readers.draining):
                    self.woken.clear()
                    await self.woken.wait()
                return True
        return False


class Readers:
    """The table, of one event loop: that of the doors."""

    def __init__(self) -> None:
        self.waiting: dict[str, set[Reader]] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.poller: asyncio.Task[None] | None = None
        self.draining = False
        """Every reader is to leave."""
        self.ended: OrderedDict[str, Reached] = OrderedDict()
        """The newest tasks that became quiet: a reader that comes a moment later has not missed it."""

    @contextlib.asynccontextmanager
    async def reader(self, task_id: str, context_id: str, after: int) -> AsyncIterator[Reader]:
        """A reader that hears of its task for as long as the block lasts. Subscribed first, so nothing is missed."""
        self.bind()
        if self.poller is None or self.poller.done():
            self.poller = asyncio.get_running_loop().create_task(self._poll())
        reader = Reader(task_id, context_id, after)
        self.waiting.setdefault(task_id, set()).add(reader)
        # Added first, then looked at: the thread that commits does it the other way round.
        if news := self.ended.get(task_id):
            reader.wake(news)
        try:
            yield reader
        finally:
            group = self.waiting[task_id]
            group.discard(reader)
            if not group:
                del self.waiting[task_id]

    def drain(self) -> None:
        """Every reader leaves at once, and so does every later one."""
        self.draining = True
        for group in self.waiting.values():
            for reader in group:
                reader.woken.set()

    def bind(self) -> None:
        """Listens from now on, for readers of the running loop; cheap when it does."""
        loop = asyncio.get_running_loop()
        if self.loop is not loop:
            # A new loop means a new life of the process's doors (tests); the old loop's readers are gone with it.
            self.loop, self.waiting, self.draining = loop, {}, False
            hints.forget(self._heard)
            hints.listen(self._heard)
            self.poller = None

    def _heard(self, news: list[Reached]) -> None:
        """On the thread that committed, or that of the hints from elsewhere."""
        for item in news:
            if item.state in QUIET:
                self.ended[item.task_id] = item
        while len(self.ended) > REMEMBERED:
            with contextlib.suppress(KeyError):  # another thread was faster
                self.ended.popitem(last=False)
        wanted = [item for item in news if item.task_id in self.waiting]
        if wanted and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake, wanted)

    def _wake(self, news: list[Reached]) -> None:
        for item in news:
            for reader in self.waiting.get(item.task_id, ()):
                reader.wake(item)

    async def _poll(self) -> None:
        """The floor under all hints; ends when nobody waits."""
        while self.waiting:
            await asyncio.sleep(settings.A2A_POLL_SECONDS)
            ids = list(self.waiting)
            for start in range(0, len(ids), POLLED):
                try:
                    self._wake(await bridge.ask(LastEvents(task_ids=tuple(ids[start : start + POLLED]))))
                except Exception:
                    log.exception("the poll for %d readers failed; trying again", len(ids))


readers = Readers()
"""The readers of this process."""
