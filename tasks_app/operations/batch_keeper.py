"""The keeper goes on with batches, a step at a time, as long as it has their turns.

The rows are the queue: a batch that is due may be taken by the keeper of any process. batch_steps.py has the steps.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

from django.conf import settings

from a2a.states import INTERRUPTED, TERMINAL
from tasks_app.batches import rows
from tasks_app.batches.rows import Turn
from tasks_app.event_log.readers import readers
from tasks_app.event_log.rounds import TurnRounds
from tasks_app.hints import DueRows, Reached
from tasks_app.operations.batch_steps import advance, ask
from tasks_app.operations.pauses import shorten

log = logging.getLogger(__name__)
AT_ONCE = 100
"""Batches that one process goes on with at the same time."""
NEWS = TERMINAL | INTERRUPTED


class Keeper(TurnRounds[Turn]):
    """The keeper of this process, on the loop of its doors."""

    def __init__(self) -> None:
        super().__init__(DueRows.BATCHES, self.begin_turns)
        self.followers: dict[str, asyncio.Event] = {}
        """The events that the news of a task sets: of batches, and of items at work."""

    def hear(self, news: list[Reached]) -> None:
        """Wake the batches that news are about. Any thread may call it."""
        for item in news if self.followers else ():
            if item.state in NEWS and (event := self.followers.get(item.task_id)):
                self.call(event.set)

    def give_back(self, turns: Sequence[Turn]) -> None:
        rows.release([turn.id for turn in turns])

    async def begin_turns(self) -> None:
        """Begin with the batches that are due, as far as there is room."""
        if (room := AT_ONCE - len(self.turns)) > 0:
            for turn in await ask(partial(rows.take_turns, room, [turn.id for turn in self.turns.values()])):
                self.begin_turn(turn, self._keep(turn))

    async def _keep(self, turn: Turn) -> None:
        """Go on with a batch until it is over, or has given its place to others. Raises nothing but CancelledError.

        A turn ends after the time of a round while all places are taken. Otherwise batches whose items end one after
        the other would keep out those of all other owners.
        """
        event, own, ends = asyncio.Event(), set[str](), monotonic() + settings.A2A_SWEEP_SECONDS
        is_probe = False
        try:
            while not readers.draining:
                event.clear()
                step = await advance(turn, is_probe=is_probe)
                if step is None:
                    return
                is_probe = step.is_refused
                for task_id in own - {turn.id, *step.at_work}:
                    self.followers.pop(task_id, None)
                own = {turn.id, *step.at_work}
                self.followers.update(dict.fromkeys(own, event))
                if not step.has_more and not await self._pause(turn, event, step.pause):
                    return
                if monotonic() > ends and len(self.turns) >= AT_ONCE:
                    await ask(partial(rows.give_back, turn.id, 0))
                    return
        except Exception:
            log.exception("batch %s waits for another attempt", turn.id)
        finally:
            for task_id in own:
                self.followers.pop(task_id, None)

    async def _pause(self, turn: Turn, event: asyncio.Event, seconds: float) -> bool:
        """Wait for news, and look without any after a time, which is that of a round at most. Return False if the batch
        has given its place to others.

        After a pause for a limit one item tries.

        A batch gives its place to others while all places are taken. Otherwise batches whose items wait for answers,
        or for the limits of their owners, would keep out those of all other owners. No keeper hears news of such a
        batch, so it is due again after the time of a round, however long it must wait: its items may end, or it may be
        canceled.
        """
        rest = shorten(seconds) or settings.A2A_POLL_SECONDS
        while True:
            part = min(rest, settings.A2A_POLL_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(part):
                    await event.wait()
            rest -= part
            if not event.is_set() and len(self.turns) >= AT_ONCE:
                await ask(partial(rows.give_back, turn.id, shorten(rest)))
                return False
            await ask(partial(rows.renew, turn.id))
            if event.is_set() or rest <= 0:
                return True


keeper = Keeper()
"""The keeper of this process."""
