"""The responder takes questions that are due, and has each answered, on the loop of the doors."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from django.conf import settings

from tasks_app.event_log.readers import readers
from tasks_app.event_log.rounds import Rounds
from tasks_app.hints import DueRows
from tasks_app.slack import questions
from tasks_app.slack.answering import Ask, answer
from tasks_app.slack.lane import ask
from tasks_app.slack.web_api import WebApi


class Responder(Rounds):
    """The responder of this process."""

    def __init__(self) -> None:
        super().__init__(DueRows.QUESTIONS, self.begin_turns)
        self.turns: dict[asyncio.Task[None], questions.Turn] = {}
        """The questions that are answered."""
        self.api = WebApi()
        self.ask: Ask | None = None
        """Verification, which config/asgi.py sets, because its room is above this one."""

    def start(self) -> None:
        """Begin on the running loop. A process without one has no doors."""
        self.api = WebApi()
        super().start()

    def under_way(self) -> Iterable["asyncio.Task[None]"]:
        return self.turns

    def release(self) -> Callable[[], object] | None:
        turns = tuple(self.turns.values())
        self.turns.clear()
        return partial(questions.release, turns) if turns else None

    async def begin_turns(self) -> None:
        """Begin with the questions that are due, as far as there is room."""
        room = settings.A2A_SLACK_QUESTIONS - len(self.turns)
        if room <= 0 or self.ask is None:
            return
        busy = Counter(turn.workspace_id for turn in self.turns.values())
        for turn in await ask(partial(questions.take, room, busy)):
            work = asyncio.ensure_future(answer(turn, self.api, self.ask))
            self.turns[work] = turn
            work.add_done_callback(self._end_turn)

    def _end_turn(self, work: "asyncio.Task[None]") -> None:
        if not readers.draining:  # The questions that are left then are given back.
            self.turns.pop(work, None)
        self.wakeup.set()  # The next question of the thread may be due.

    async def finish(self) -> None:
        """Answer all that is due, and wait for the end of it. For callers without a running responder."""
        await self.begin_turns()
        while self.turns:
            await asyncio.gather(*self.turns)
            await self.begin_turns()


responder = Responder()
"""The responder of this process."""
