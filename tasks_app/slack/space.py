"""The space in memory for the files of questions while they are fetched and stored. Questions wait for it in order."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.conf import settings

MOST_FILES = 10
"""Files of a question at most."""
SHARES = 2
"""Shares of the space. A share is as large as all files of the largest question, and a workspace has one at most."""


class Place:
    """The place of one question, from the time when it begins to wait."""

    def __init__(self, workspace_id: int, size: int) -> None:
        self.workspace_id = workspace_id
        self.size = size
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the question has its space."""
        self.amount = 0
        """The bytes of the space that it has."""


class Space:
    """The space of one process, on one event loop. Workspaces take turns, and so do the questions of each."""

    def __init__(self) -> None:
        self.amounts: Counter[int] = Counter()
        """The bytes that each workspace has."""
        self.queues: dict[int, deque[Place]] = {}
        """The places that wait, by workspace, which are in the order of their turns."""

    @asynccontextmanager
    async def hold(self, workspace_id: int, size: int) -> AsyncIterator[Place]:
        """Wait for space, and have it for the length of the block, or until release(). Nothing needs no space."""
        place = Place(workspace_id, size)
        try:
            if size:
                self.queues.setdefault(workspace_id, deque()).append(place)
                self._admit()
                await place.turn
            yield place
        finally:
            self.release(place)

    def release(self, place: Place) -> None:
        """Give the space of a place back, or end its wait. A second call does nothing."""
        queue = self.queues.get(place.workspace_id, ())
        if place in queue:
            self._leave(place)
        elif place.amount:
            self.amounts[place.workspace_id] -= place.amount
            place.amount = 0
            self.amounts = +self.amounts
        else:
            return
        self._admit()

    def _leave(self, place: Place) -> None:
        """Take a place out of its queue. The next one of its workspace comes after those of all others."""
        queue = self.queues.pop(place.workspace_id)
        queue.remove(place)
        if queue:
            self.queues[place.workspace_id] = queue

    def _admit(self) -> None:
        while (place := self._next()) is not None:
            self._leave(place)
            place.amount = place.size
            self.amounts[place.workspace_id] += place.size
            if not place.turn.done():  # A cancelled wait gives its space back when its block ends.
                place.turn.set_result(None)

    def _next(self) -> Place | None:
        """Return the next place that has space.

        One for which the whole space is too full is overtaken by none, or small questions would keep it from its turn.
        """
        share = MOST_FILES * settings.A2A_ATTACHMENT_BYTES
        for workspace_id, queue in self.queues.items():
            if self.amounts[workspace_id] + queue[0].size <= share:
                return queue[0] if self.amounts.total() + queue[0].size <= SHARES * share else None
        return None
