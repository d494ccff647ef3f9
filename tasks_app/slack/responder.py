"""The responder takes questions that are due, and has each answered, on the loop of the doors."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial

from django.conf import settings

from tasks_app.event_log.rounds import TurnRounds
from tasks_app.hints import DueRows
from tasks_app.slack import questions
from tasks_app.slack.answering import Ask, answer
from tasks_app.slack.lane import ask
from tasks_app.slack.web_api import WebApi


class Responder(TurnRounds[questions.Turn]):
    """The responder of this process."""

    def __init__(self) -> None:
        super().__init__(DueRows.QUESTIONS, self.begin_turns)
        self.api = WebApi()
        self.ask: Ask | None = None
        """Verification, which config/asgi.py sets, because its room is above this one."""

    def start(self) -> None:
        """Begin on the running loop. A process without one has no doors."""
        self.api = WebApi()
        super().start()

    def give_back(self, turns: Sequence[questions.Turn]) -> None:
        questions.release(turns)

    async def begin_turns(self) -> None:
        """Begin with the questions that are due, as far as there is room."""
        room = settings.A2A_SLACK_QUESTIONS - len(self.turns)
        if room <= 0 or self.ask is None:
            return
        busy = Counter(turn.workspace_id for turn in self.turns.values())
        for turn in await ask(partial(questions.take, room, busy)):
            self.begin_turn(turn, answer(turn, self.api, self.ask))

    async def finish(self) -> None:
        """Answer all that is due, and wait for the end of it. For callers without a running responder."""
        await self.begin_turns()
        while self.turns:
            await asyncio.gather(*self.turns)
            await self.begin_turns()


responder = Responder()
"""The responder of this process."""
