"""The look-up of keys that may be unknown, for all calls of a few milliseconds at once. A flood of wrong keys from many
addresses, none of which is refused yet, costs one small statement for each group."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tasks_app.callers.access import FindStored
from tasks_app.database.bridge import bridge
from tasks_app.process.answering import Whole

log = logging.getLogger(__name__)
GROUP_SECONDS = 0.01
"""Seconds for which a group collects keys."""
MOST = 500
"""Keys of a group. A full one is looked up at once."""


class Doubt(NamedTuple):
    """A call whose key may be unknown."""

    digests: tuple[str, ...]
    """The digests of its key."""
    refuse: Callable[[], Whole | None]
    """Returns the refusal of an unknown key; None if the application itself must answer."""
    answer: "asyncio.Future[Whole | None]"
    """The refusal, or None."""


class LookUps:
    """The groups of the loop of this process."""

    def __init__(self) -> None:
        self.doubts: list[Doubt] = []
        """The calls of the group that collects now."""
        self.timer: asyncio.TimerHandle | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def add(self, digests: tuple[str, ...], refuse: Callable[[], Whole | None]) -> "asyncio.Future[Whole | None]":
        """Return a future of the refusal, whose result is None for a stored key."""
        loop = asyncio.get_running_loop()
        doubt = Doubt(digests, refuse, loop.create_future())
        self.doubts.append(doubt)
        if self.timer is None:
            self.timer = loop.call_later(GROUP_SECONDS, self._look_up)
        elif len(self.doubts) >= MOST:
            self.timer.cancel()
            self._look_up()
        return doubt.answer

    def _look_up(self) -> None:
        doubts, self.doubts, self.timer = self.doubts, [], None
        task = asyncio.ensure_future(_settle(doubts))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


async def _settle(doubts: Sequence[Doubt]) -> None:
    """Look the keys up, and refuse the calls with unknown ones."""
    stored: frozenset[str] | None = None
    try:
        stored = await bridge.ask(FindStored(tuple(digest for doubt in doubts for digest in doubt.digests)))
    except Exception as error:  # noqa: BLE001  # the database may be away; the application says so to each caller
        log.warning("the keys of %d calls could not be looked up together: %s", len(doubts), error)
    for doubt in doubts:
        if not doubt.answer.done():
            unknown = stored is not None and stored.isdisjoint(doubt.digests)
            doubt.answer.set_result(doubt.refuse() if unknown else None)
