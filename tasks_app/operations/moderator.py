"""The moderator has agents answer the messages of shared streams.

The rows are the queue: an answer that is due may be taken by the moderator of any process. It follows a number of
answers at the same time. An answer that waits gives its place back, and becomes due again when it can go on.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import partial

from django.conf import settings

from a2a.shared_streams import SharedStreamState
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log.rounds import TurnRounds
from tasks_app.hints import Reached
from tasks_app.operations.answering import answer, ask
from tasks_app.shared_streams.answers import Turn, release, take_turns
from tasks_app.shared_streams.waiting import look, wake_by_id

log = logging.getLogger(__name__)
AT_ONCE = 200
"""Answers that one process follows at the same time."""
MOST = 10_000
"""Tasks of waiting answers whose hints a process hears, at most."""


class Moderator(TurnRounds[Turn]):
    """The moderator of this process, on the loop of its doors."""

    def __init__(self) -> None:
        super().__init__("answers in shared streams", self.begin_turns)
        self.resting: OrderedDict[str, int] = OrderedDict()
        """The tasks of the answers that this process let wait, with these answers. The rows have all of them."""
        self.woken: set[int] = set()
        """The answers whose tasks have news."""
        self.look_at = 0.0
        """The time of the next look for answers that can go on, on the clock of the loop."""
        self.looked_to = 0
        """The last answer of the look before."""

    def hear(self, news: list[Reached]) -> None:
        """Take in hints of shared streams, and of tasks whose answers wait. Any thread may call it."""
        tasks = [item.task_id for item in news if item.task_id in self.resting]
        is_due = any(item.message and item.state == SharedStreamState.ACTIVE for item in news)
        if tasks or is_due:
            self.call(self._take_in, tasks)

    def give_back(self, turns: Sequence[Turn]) -> None:
        release([turn.id for turn in turns])

    def _take_in(self, tasks: list[str]) -> None:
        self.woken.update(answer for task in tasks if (answer := self.resting.pop(task, None)) is not None)
        self.wakeup.set()

    async def begin_turns(self) -> None:
        """Begin with the answers that are due, as far as there is room."""
        await self._wake()
        if (room := AT_ONCE - len(self.turns)) <= 0:
            return
        busy = Counter(turn.caller.owner_id for turn in self.turns.values())
        for turn in await ask(partial(take_turns, room, busy)):
            self.begin_turn(turn, self._answer(turn))

    async def _wake(self) -> None:
        """Make the waiting answers due that can go on: those of hints, and now and then those that a look finds."""
        ids, self.woken = self.woken, set()
        if (now := asyncio.get_running_loop().time()) >= self.look_at:
            self.look_at = now + settings.A2A_SWEEP_SECONDS
            ready, self.looked_to = await bridge.ask(DoSlowly(partial(look, self.looked_to)))
            ids.update(ready)
        if ids:
            await ask(partial(wake_by_id, sorted(ids)))

    async def _answer(self, turn: Turn) -> None:
        """Have the agent answer one message. Raises nothing but CancelledError."""
        try:
            if (task_id := await answer(turn)) is not None:
                self.resting[task_id] = turn.id
                if len(self.resting) > MOST:
                    self.resting.popitem(last=False)  # A look finds it.
        except Exception:
            log.exception("the answer of %s to %s/%s waits for another attempt", turn.agent, turn.stream_id, turn.seq)


moderator = Moderator()
"""The moderator of this process."""
