"""The responder takes questions that are due, and has each answered, on the loop of the doors."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial

from django.conf import settings

from tasks_app.event_log.readers import readers
from tasks_app.slack import questions
from tasks_app.slack.answering import Ask, answer
from tasks_app.slack.lane import ask
from tasks_app.slack.web_api import WebApi

log = logging.getLogger(__name__)


class Responder:
    """The responder of this process."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wakeup = asyncio.Event()
        self.work: asyncio.Task[None] | None = None
        self.turns: dict[asyncio.Task[None], int] = {}
        """The questions that are answered, with their workspaces."""
        self.api = WebApi()
        self.ask: Ask | None = None
        """Verification, which config/asgi.py sets, because its room is above this one."""

    def start(self) -> None:
        """Begin on the running loop. A process without one has no doors."""
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self.wakeup, self.api = asyncio.Event(), WebApi()
        self.work = self.loop.create_task(self._run())

    def stop(self) -> None:
        """End. Another process, or the next one, goes on with the questions under way."""
        loop, self.loop = self.loop, None
        if loop is None or loop.is_closed():
            return
        for work in (self.work, *self.turns):
            if work is not None:
                loop.call_soon_threadsafe(work.cancel)

    def wake(self) -> None:
        """Look for questions now. Any thread may call it."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.wakeup.set)

    async def _run(self) -> None:
        while not readers.draining:
            self.wakeup.clear()
            try:
                await self.begin_turns()
            except Exception:
                log.exception("questions from Slack could not be read; trying again")
            with suppress(TimeoutError):
                async with asyncio.timeout(settings.A2A_SWEEP_SECONDS):
                    await self.wakeup.wait()

    async def begin_turns(self) -> None:
        """Begin with the questions that are due, as far as there is room."""
        room = settings.A2A_SLACK_QUESTIONS - len(self.turns)
        if room <= 0 or self.ask is None:
            return
        for turn in await ask(partial(questions.take, room, Counter(self.turns.values()))):
            work = asyncio.ensure_future(answer(turn, self.api, self.ask))
            self.turns[work] = turn.workspace_id
            work.add_done_callback(self._end_turn)

    def _end_turn(self, work: "asyncio.Task[None]") -> None:
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
