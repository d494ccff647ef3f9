"""Room for the pages of a stream: large ones count in the account of its caller until the client has taken them.

If they did not, a caller with thousands of streams that it does not read would fill the memory. Where there is no room,
a stream sends less at once, and an event that is large by itself waits until others of its caller have been sent.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter

from a2a.errors import RateLimited, Unavailable
from tasks_app.event_log.read_events import PAGE_SIZE
from tasks_app.event_log.readers import LogReader, LogRow
from tasks_app.off_loop import LARGE
from tasks_app.operations import Context
from tasks_app.operations.room import has_room, make_room


class PageRoom:
    """The room for the pages of one stream."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.most = 0
        """The bytes that the next page may have, because the stream waits for their room before it reads the page."""
        self.is_short = False
        """Whether there was no room for the last large page."""

    async def page(self, reader: LogReader, seconds: float) -> Sequence[LogRow] | None:
        """Return the next rows of the log that there is room for; an empty list if the log has no more, and None if
        there was no room for so many seconds."""
        while not self.most or await self._wait(seconds):
            after, rows = reader.cursor, await reader.page(self._most_to_read())
            sizes = [row.size for row in rows]
            fitting = self._count_fitting(sizes)
            if fitting == len(rows):
                return rows
            self.is_short = True
            rows = rows[:fitting]
            reader.cursor = rows[-1].seq if rows else after
            if rows:
                return rows
            self.most = sum(sizes)
        return None

    def _most_to_read(self) -> int:
        """Return the characters of the next page. Without room for more they are few, so that none are read in vain."""
        if self.most:
            return min(self.most, PAGE_SIZE)
        if self.is_short and has_room(self.context, PAGE_SIZE):
            self.context.release()
            self.is_short = False
        return LARGE if self.is_short else PAGE_SIZE

    def _count_fitting(self, sizes: Sequence[int]) -> int:
        """Return how many rows of these sizes, from the first one on, there is room for. A few small ones need none."""
        size = sum(sizes)
        if size <= LARGE or (not self.most and has_room(self.context, size)):
            return len(sizes)
        return bisect_right(list(accumulate(sizes)), self.most or LARGE)

    async def _wait(self, seconds: float) -> bool:
        """Wait until there is room. Return False if there is none when the time is up, or the process goes down."""
        self.context.patience = perf_counter() + seconds
        try:
            return await make_room(self.context, self.most)
        except (RateLimited, Unavailable):
            return False

    def measure(self, size: int) -> None:
        """Count the bytes of the page, now that they are known, if it has taken room."""
        if self.context.weight is not None:
            self.context.weight.measure(size)

    def release(self) -> None:
        """Give back what the last page has taken: the client has it."""
        self.most = 0
        self.context.release()
