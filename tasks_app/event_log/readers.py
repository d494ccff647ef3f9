"""The readers of this process: one table of those that wait, woken by hints, with one poll for all of them.

A reader owns nothing but a cursor. It looks at the log, and when there is nothing new it waits for a hint, or for the
poll that finds what hints missed (another process, a lost message).
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Protocol, TypeVar

from django.conf import settings

from a2a.documents import EventDocument
from a2a.states import QUIET
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_failure
from tasks_app.database.work import Work
from tasks_app.event_log import LastEvents, ReadEvents
from tasks_app.event_log.read_events import PAGE_SIZE
from tasks_app.hints import Reached, hints

log = logging.getLogger(__name__)
AnyReader = TypeVar("AnyReader", bound="LogReader")
MAX_QUIET = 2_000
"""Tasks that became quiet and are remembered, at most."""
POLL_BATCH = 500
"""Tasks that one statement of the poll asks about, at most."""


class LogRow(Protocol):
    """A row of a log."""

    @property
    def seq(self) -> int: ...

    @property
    def state(self) -> str | None: ...

    @property
    def size(self) -> int: ...


class LogReader:
    """A cursor in one log: that of a task, or that of a shared stream."""

    def __init__(self, id: str, after: int) -> None:
        self.id = id
        """The id of the task or the shared stream."""
        self.cursor = after
        self.newest = after
        """The number of the last row of the log, as far as hints and reads have told."""
        self.state: str | None = None
        """The state as of the last hint."""
        self.is_over = False
        """Whether the caller that waits here has left."""
        self.wakeup = asyncio.Event()

    def leave(self) -> None:
        """End the wait: the caller has left."""
        self.is_over = True
        self.wakeup.set()

    def wake(self, news: Reached) -> None:
        """Take in news. Older news may come later: from a poll that began before a hint, or from hints out of order."""
        if news.seq >= self.newest:
            self.newest = news.seq
            self.state = news.state or self.state
        self.wakeup.set()

    @staticmethod
    def latest(ids: tuple[str, ...]) -> Work[list[Reached]]:
        """Return the work item that reads how far some logs of the kind have come."""
        raise NotImplementedError

    async def page(self, most: int = PAGE_SIZE) -> Sequence[LogRow]:
        """Return the next rows without waiting for new ones; an empty list if the log has no more. The page ends with
        the row that makes up `most` characters."""
        raise NotImplementedError

    def advance(self, last: int | None, newest: int) -> None:
        """Move the cursor to the last row of a page; None for an empty page. `newest` is that of before the read."""
        if last is not None:
            self.cursor = last
            self.newest = max(self.newest, last)
        elif self.newest == newest:
            self.newest = self.cursor  # A hint named a row that does not exist: waiting for it would spin.

    async def news(self, seconds: float) -> bool:
        """Wait for an event after the cursor. Return whether there is one when the time is up or the readers drain."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.newest <= self.cursor and not readers.draining:
                    self.wakeup.clear()
                    await self.wakeup.wait()
        return self.newest > self.cursor

    async def quiet(self, seconds: float) -> bool:
        """Wait until the task is quiet, the caller leaves, or the readers drain. Return False when the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not ((self.state in QUIET and self.newest > self.cursor) or self.is_over or readers.draining):
                    self.wakeup.clear()
                    await self.wakeup.wait()
                return True
        return False


class Reader(LogReader):
    """A cursor in the log of one task."""

    def __init__(self, task_id: str, context_id: str, after: int) -> None:
        super().__init__(task_id, after)
        self.context_id = context_id

    @staticmethod
    def latest(ids: tuple[str, ...]) -> Work[list[Reached]]:
        return LastEvents(ids)

    async def page(self, most: int = PAGE_SIZE) -> list[EventDocument]:
        item = ReadEvents(task_id=self.id, after=self.cursor, context_id=self.context_id, most=most)
        newest = self.newest
        events = await bridge.ask(item, settings.A2A_LEASE_SECONDS)
        self.advance(events[-1].seq if events else None, newest)
        return events


class Readers:
    """The readers of one event loop, that of the doors, by the id of their log."""

    def __init__(self) -> None:
        self.waiting: dict[str, set[LogReader]] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.poller: asyncio.Task[None] | None = None
        self.draining = False
        """True once every reader must leave."""
        self.quiet_tasks: OrderedDict[str, Reached] = OrderedDict()
        """The last tasks that became quiet, so that a reader that comes a moment later misses nothing."""

    @contextlib.asynccontextmanager
    async def attend(self, reader: AnyReader) -> AsyncIterator[AnyReader]:
        """Give the reader the news of its log while the block lasts."""
        self.bind()
        if self.poller is None or self.poller.done():
            self.poller = asyncio.get_running_loop().create_task(self._poll())
        self.waiting.setdefault(reader.id, set()).add(reader)
        # Add the reader first, then look at the quiet tasks. The thread that commits notes the quiet task first, then
        # looks for readers. So one of the two sees the other.
        if news := self.quiet_tasks.get(reader.id):
            reader.wake(news)
        try:
            yield reader
        finally:
            group = self.waiting[reader.id]
            group.discard(reader)
            if not group:
                del self.waiting[reader.id]

    def reader(self, task_id: str, context_id: str, after: int) -> contextlib.AbstractAsyncContextManager[Reader]:
        """Give a reader of a task that gets its news while the block lasts."""
        return self.attend(Reader(task_id, context_id, after))

    def drain(self) -> None:
        """Have every reader leave at once, and every later one too."""
        self.draining = True
        for group in self.waiting.values():
            for reader in group:
                reader.wakeup.set()

    def bind(self) -> None:
        """Listen to hints for readers of the running loop. Cheap if it does so already."""
        loop = asyncio.get_running_loop()
        if self.loop is not loop:
            # The doors started anew on another loop: the readers of the old loop ended with it.
            self.loop, self.waiting, self.draining = loop, {}, False
            hints.forget(self._receive)
            hints.listen(self._receive)
            self.poller = None

    def _receive(self, news: list[Reached]) -> None:
        """Take in news, on the thread that committed or the thread of hints from other processes."""
        for item in news:
            if item.state in QUIET:
                self.quiet_tasks[item.task_id] = item
        while len(self.quiet_tasks) > MAX_QUIET:
            with contextlib.suppress(KeyError):  # another thread has removed it
                self.quiet_tasks.popitem(last=False)
        for_readers = [item for item in news if item.task_id in self.waiting]
        if for_readers and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake, for_readers)

    def _wake(self, news: list[Reached]) -> None:
        for item in news:
            for reader in self.waiting.get(item.task_id, ()):
                reader.wake(item)

    async def _poll(self) -> None:
        """Poll for what hints missed, until there are no readers."""
        while self.waiting:
            await asyncio.sleep(settings.A2A_POLL_SECONDS)
            by_kind: defaultdict[type[LogReader], list[str]] = defaultdict(list)
            for id, group in self.waiting.items():
                by_kind[type(next(iter(group)))].append(id)
            for kind, ids in by_kind.items():
                await self._poll_kind(kind, ids)

    async def _poll_kind(self, kind: type[LogReader], ids: list[str]) -> None:
        for start in range(0, len(ids), POLL_BATCH):
            try:
                self._wake(await bridge.ask(kind.latest(tuple(ids[start : start + POLL_BATCH]))))
            except Exception:  # noqa: BLE001  # it is logged, and the work repeated
                log_failure(log, "the poll for %d readers failed; trying again", len(ids))


readers = Readers()
"""The readers of this process."""
