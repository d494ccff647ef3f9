"""The turns of calls: how many calls of one owner a process works on at the same time.

A client may have thousands of calls in flight. Taken up at once, they would fill the queues of the database and keep
the loop from the calls of all others. They are not refused, because a client that is refused calls again at once. A
door that waits for the turn of a call reads no further one from the same connection, so that the client has to wait as
well.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Self, TypeVar

from django.conf import settings

from tasks_app.database.errors import Busy
from tasks_app.database.waits import Waiting, Waits

R = TypeVar("R")
SHARE = 8
"""An owner may have this part of A2A_OWNER_CALLS while others call as well. With 64 calls of a client at work, calls of
others take six times as long as alone; with eight they take a third longer (measured with 2,560 calls in flight)."""
SHARED_SECONDS = 1.0
"""Seconds for which a call of another owner counts as one of those."""
CALLING_SECONDS = 1.0
"""Seconds for which strangers have to make way for the calls of known callers after one of those."""


class Place(Waiting, eq=False):
    """A call's place in the line of its owner."""

    lack = "no turn, because other calls of its owner have not ended"


class Line:
    """The calls of one owner: those that have a turn, and the places of those that wait for one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.at_work = 0
        self.places: OrderedDict[Place, None] = OrderedDict()
        """The places of those that wait, in their order. One that gives up takes its place out, with all that the place
        refers to."""

    def fill(self, most: int) -> None:
        """Give turns to those who wait, as far as the limit allows."""
        while self.places and self.at_work < most:
            future = self.places.popitem(last=False)[0].future
            if future is not None and not future.done():
                future.set_result(None)
                self.at_work += 1


class Turn:
    """The turn of one call, which end() gives back. While the call waits for something slow, it has none."""

    def __init__(self, turns: "Turns", owner_id: int, line: Line | None = None) -> None:
        self.turns, self.owner_id = turns, owner_id
        self.line = line
        """The line that the turn is of; None once it is given back, and for a call that got none in time."""

    def __enter__(self) -> Self:
        """Have the turn for the length of a block, or until something slow begins in it."""
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    def end(self) -> None:
        """Give the turn back in the next round of the loop. A second call does nothing.

        Calls that wait for nothing, such as those that cannot be read, would otherwise find a free turn one after the
        other, and hundreds of them would be answered in one round.
        """
        if self.line is not None:
            line, self.line = self.line, None
            if not line.loop.is_closed():
                line.loop.call_soon(self.turns.give_back, self.owner_id, line)

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
        self.last_owner: int | None = None
        self.last_at = float("-inf")
        """The owner and the time of the last call, on the monotonic clock."""
        self.shared_until = 0.0
        """The time until which several owners share the process, on the monotonic clock."""

    async def take(
        self, owner_id: int, departure: Callable[[], Awaitable[None]] | None = None, *, is_next: bool = False
    ) -> Turn:
        """Return a turn, at once if the owner has fewer than it may have. A call that has begun is next in its line.

        Raises Busy if there is none within A2A_CALL_SECONDS, or too many wait, and CallerLeft if `departure` ends
        before.
        """
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self.loop, self.lines, self.waits = loop, {}, Waits(loop)
        now = monotonic()
        if owner_id != self.last_owner:
            if now - self.last_at < SHARED_SECONDS:
                self.shared_until = now + SHARED_SECONDS
            self.last_owner = owner_id
        self.last_at = now
        line = self.lines.get(owner_id)
        if line is None:
            line = self.lines[owner_id] = Line(loop)
        most = self.most(now)
        if line.places:
            line.fill(most)  # The limit may be higher than when they came.
        if line.at_work >= most:
            if len(line.places) >= settings.A2A_LANE_CALLS and not is_next:
                raise Busy(detail="no turn, because too many calls of its owner wait")
            await self._wait(owner_id, line, departure, is_next=is_next)
        else:
            line.at_work += 1
        return Turn(self, owner_id, line)

    def are_taken(self) -> bool:
        """Return whether a known caller has called in the last CALLING_SECONDS."""
        return monotonic() - self.last_at < CALLING_SECONDS

    def most(self, now: float) -> int:
        """Return the number of turns that an owner may have at a time of the monotonic clock."""
        most: int = settings.A2A_OWNER_CALLS
        return max(1, most // SHARE) if now < self.shared_until else most

    def give_back(self, owner_id: int, line: Line) -> None:
        """Give a turn of an owner to those who wait, as far as the limit allows."""
        line.at_work -= 1
        line.fill(self.most(monotonic()))
        if not line.at_work and self.lines.get(owner_id) is line:
            del self.lines[owner_id]

    async def _wait(
        self, owner_id: int, line: Line, departure: Callable[[], Awaitable[None]] | None, *, is_next: bool
    ) -> None:
        """Wait until another call of the owner gives its turn to this one. Raises Busy and CallerLeft."""
        waits, now = self.waits, monotonic()
        future: asyncio.Future[None] = line.loop.create_future()
        place = Place(future=future, since=now, ends=now + waits.seconds(None), departure=departure)
        line.places[place] = None
        if is_next:
            line.places.move_to_end(place, last=False)
        waits.add(place)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.exception() is None:
                self.give_back(owner_id, line)
            raise
        finally:
            line.places.pop(place, None)
            waits.remove(place)


turns = Turns()
"""The turns of the calls of this process."""
