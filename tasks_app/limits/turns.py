"""The turns of calls: how many calls of one owner a process works on at the same time.

A client may have thousands of calls in flight. Taken up at once, they would fill the queues of the database and keep
the loop from the calls of all others. They are not refused, because a client that is refused calls again at once. A
door that waits for the turn of a call reads no further one from the same connection, so that the client has to wait as
well.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from django.conf import settings

from tasks_app.database.errors import Busy
from tasks_app.database.waits import Waiting, Waits

R = TypeVar("R")
SHARE = 8
"""An owner may have this part of A2A_OWNER_CALLS while others call as well. With 64 calls of a client at work, calls of
others take six times as long as alone; with eight they take a third longer (measured with 2,560 calls in flight)."""
SHARED_SECONDS = 1.0
"""Seconds for which a call of another owner counts as one of those."""


class Place(Waiting, eq=False):
    """A call's place in the line of its owner."""

    lack = "no turn, because other calls of its owner have not ended"


class Line:
    """The calls of one owner: those that have a turn, and the places of those that wait for one."""

    def __init__(self) -> None:
        self.at_work = 0
        self.places: deque[Place] = deque()

    def give(self, most: int) -> None:
        """Give a turn back, and turns to those who wait as far as the limit allows."""
        self.at_work -= 1
        while self.places and self.at_work < most:
            future = self.places.popleft().future
            if future is not None and not future.done():
                future.set_result(None)
                self.at_work += 1


class Turn:
    """The turn of one call, which end() gives back. While the call waits for something slow, it has none."""

    def __init__(self, turns: "Turns", owner_id: int, line: Line) -> None:
        self.turns, self.owner_id = turns, owner_id
        self.line: Line | None = line

    def end(self) -> None:
        """Give the turn back. A second call does nothing."""
        if self.line is not None:
            line, self.line = self.line, None
            self.turns.give(self.owner_id, line)

    async def wait_outside(self, work: Awaitable[R]) -> R:
        """Return the result of slow work, without the turn meanwhile. Raises the errors of the work."""
        self.end()
        result = await work
        with contextlib.suppress(Busy):  # Then the call goes on without a turn: its change may be half done.
            self.line = (await self.turns.take(self.owner_id, is_next=True)).line
        return result


class Turns:
    """The lines of the owners, on the loop of this process."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lines: dict[int, Line] = {}
        self.returns: list[tuple[int, Line]] = []
        """The turns that were given back in the current round of the loop."""
        self.last_owner: int | None = None
        """The owner of the last call."""
        self.shared_until = 0.0
        """The time until which several owners share the process, on the monotonic clock."""

    async def take(
        self, owner_id: int, departure: Callable[[], Awaitable[None]] | None = None, *, is_next: bool = False
    ) -> Turn:
        """Return a turn, at once if the owner has fewer than it may have. A call that has begun is next in its line.

        Raises Busy if there is none within A2A_CALL_SECONDS, and CallerLeft if `departure` ends before.
        """
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self.loop, self.lines, self.returns, self.waits = loop, {}, [], Waits(loop)
        now = monotonic()
        if owner_id != self.last_owner:
            if self.last_owner is not None:
                self.shared_until = now + SHARED_SECONDS
            self.last_owner = owner_id
        line = self.lines.get(owner_id)
        if line is None:
            line = self.lines[owner_id] = Line()
        if line.at_work >= self.most(now):
            await self._wait(line, departure, is_next=is_next)
        else:
            line.at_work += 1
        return Turn(self, owner_id, line)

    def most(self, now: float) -> int:
        """Return the number of turns that an owner may have at a time of the monotonic clock."""
        most: int = settings.A2A_OWNER_CALLS
        return max(1, most // SHARE) if now < self.shared_until else most

    def give(self, owner_id: int, line: Line) -> None:
        """Give a turn of an owner back, for the next round of the loop.

        Calls that wait for nothing, such as those that cannot be read, would otherwise all be answered in one round.
        """
        if self.lines.get(owner_id) is not line or self.loop is None or self.loop.is_closed():
            line.give(self.most(monotonic()))  # Another loop has taken over.
            return
        if not self.returns:
            self.loop.call_soon(self._give_all, self.returns)
        self.returns.append((owner_id, line))

    def _give_all(self, returns: list[tuple[int, Line]]) -> None:
        """Give the turns of a round back."""
        if self.returns is returns:
            self.returns = []
        most = self.most(monotonic())
        for owner_id, line in returns:
            line.give(most)
            if not line.at_work and self.lines.get(owner_id) is line:
                del self.lines[owner_id]

    async def _wait(self, line: Line, departure: Callable[[], Awaitable[None]] | None, *, is_next: bool) -> None:
        """Wait until another call of the owner gives its turn to this one. Raises Busy and CallerLeft."""
        waits, now = self.waits, monotonic()
        future: asyncio.Future[None] = waits.loop.create_future()
        place = Place(future=future, since=now, ends=now + waits.seconds(None), departure=departure)
        (line.places.appendleft if is_next else line.places.append)(place)
        waits.add(place)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.exception() is None:
                line.give(self.most(monotonic()))
            raise
        finally:
            waits.remove(place)


turns = Turns()
"""The turns of the calls of this process."""
