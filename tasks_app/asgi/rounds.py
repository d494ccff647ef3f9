"""The requests of strangers that begin in one round of the loop of this process.

Most are refused without a wait. A hundred that arrive together would be answered in one round, while the calls
of others, each of which takes some rounds, wait for them. A connection is a stranger's unless the last request on it
was a call with a valid credential.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from tasks_app.process.asgi_extensions import COMPLETE, CONNECTION
from tasks_app.transports.call import SMALL

MOST = 2
"""Requests of strangers that begin in one round."""
PAUSE = 0.001
"""Seconds between two such rounds while known callers call. The loop is idle then, and leaves the interpreter to the
threads that do the calls. Otherwise each of them would wait for it for five milliseconds, many times for each call."""
SHARED_SECONDS = 1.0
"""Seconds for which a call of a known caller counts as one of those."""


class Line:
    """The requests of one kind that are to begin."""

    def __init__(self) -> None:
        self.in_round = 0
        """The number of requests that have begun in the current round."""
        self.waiting: deque[asyncio.Future[None]] = deque()

    def begin(self) -> None:
        """Begin a round."""
        self.in_round = 0
        while self.waiting and self.in_round < MOST:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(None)
                self.in_round += 1


class Rounds:
    """The rounds of the loop, and the lines of requests. Checks of the health of the process have a line of their own,
    and so have pages."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._begin_anew(None)

    def _begin_anew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.lines = {kind: Line() for kind in ("calls", "health", "pages")}
        self.is_due = False
        """Whether the next round will begin."""
        self.known_at = float("-inf")
        """The time of the loop at which a request of a known caller came."""

    async def enter(self, scope: Mapping[str, Any], kind: str = "calls") -> None:
        """Wait until a request may begin. That of a known caller does not wait."""
        extensions = scope.get("extensions", {})
        if (connection := extensions.get(CONNECTION)) is None:
            return
        is_known, connection.is_known = connection.is_known, False
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self._begin_anew(loop)
        if is_known:
            self.known_at = loop.time()
        elif COMPLETE in extensions and connection.size <= SMALL:
            # Other bodies count in the account of their callers while they arrive, and would not in the line.
            await self._wait(self.lines[kind], loop)

    async def _wait(self, line: Line, loop: asyncio.AbstractEventLoop) -> None:
        if line.in_round < MOST and not line.waiting:
            line.in_round += 1
            if not self.is_due:
                self._begin_round_soon(loop)
            return
        future = loop.create_future()
        line.waiting.append(future)
        await future

    def _begin_round_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_due = True
        if loop.time() - self.known_at < SHARED_SECONDS:
            loop.call_later(PAUSE, self._begin_round, loop)
        else:
            loop.call_soon(self._begin_round, loop)

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            return
        self.is_due = False
        for line in self.lines.values():
            line.begin()
        if any(line.in_round for line in self.lines.values()):
            self._begin_round_soon(loop)


rounds = Rounds()
"""The rounds of this process."""
