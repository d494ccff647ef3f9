"""Rounds on the loop of the doors of a process: each looks for rows that are due, at a hint or after A2A_SWEEP_SECONDS.

The keeper, the conductor, the moderator and the responder make rounds.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from django.conf import settings

from tasks_app.database.errands import insist
from tasks_app.database.errors import log_failure
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.hints import Reached, hints

log = logging.getLogger(__name__)
Row = TypeVar("Row")


class Rounds:
    """The rounds of one part of a process. Each kind of part says what a round does, and which hints begin one."""

    def __init__(self, subject: str, look: Callable[[], Awaitable[object]]) -> None:
        self.subject = subject
        """The rows, for hints and for the log."""
        self.look = look
        """Does one round."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wakeup = asyncio.Event()
        self.work: asyncio.Task[None] | None = None

    def hear(self, news: list[Reached]) -> None:
        """Take in hints, for a part that needs them. Any thread may call it."""

    def under_way(self) -> Iterable["asyncio.Task[None]"]:
        """Return the asyncio tasks that rounds have begun, which end with the part."""
        return ()

    def release(self) -> Callable[[], object] | None:
        """Return a function that gives the rows back that this process has taken; None if there are none."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin on the running loop. A process without one has no doors, and makes no rounds."""
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self.wakeup = asyncio.Event()
        self.work = self.loop.create_task(self._run())
        hints.listen(self.hear)
        hints.on_due(self.subject, self.wake)

    def stop(self) -> None:
        """End, and give back what is under way: another process, or the next one, goes on with it."""
        hints.forget(self.hear)
        hints.forget_due(self.subject, self.wake)
        loop, self.loop = self.loop, None
        if loop is None:
            return
        for work in () if loop.is_closed() else (self.work, *self.under_way()):
            if work is not None:
                loop.call_soon_threadsafe(work.cancel)
        if (release := self.release()) is not None:
            insist(Do(release))

    def wake(self) -> None:
        """Begin a round now. Any thread may call it."""
        self.call(self.wakeup.set)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call the function on the loop, if there is one. Any thread may call it."""
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(function, *arguments)

    async def _run(self) -> None:
        while not readers.draining:
            self.wakeup.clear()
            try:
                await self.look()
            except Exception:  # noqa: BLE001  # it is logged, and the work repeated
                log_failure(log, "%s could not be read; trying again", self.subject)
            with suppress(TimeoutError):
                async with asyncio.timeout(settings.A2A_SWEEP_SECONDS):
                    await self.wakeup.wait()


class TurnRounds(Rounds, Generic[Row]):
    """Rounds that begin an asyncio task for each row, the turn of the row."""

    def __init__(self, subject: str, look: Callable[[], Awaitable[object]]) -> None:
        super().__init__(subject, look)
        self.turns: dict[asyncio.Task[None], Row] = {}
        """The rows whose turn it is."""

    @abstractmethod
    def give_back(self, turns: Sequence[Row]) -> None:
        """Give rows back that this process has taken, on the write lane."""

    def under_way(self) -> Iterable["asyncio.Task[None]"]:
        return self.turns

    def release(self) -> Callable[[], object] | None:
        rows = list(self.turns.values())
        self.turns.clear()
        return partial(self.give_back, rows) if rows else None

    def begin_turn(self, row: Row, turn: Coroutine[Any, Any, None]) -> None:
        """Begin the turn of a row."""
        work = asyncio.ensure_future(turn)
        self.turns[work] = row
        work.add_done_callback(self._end_turn)

    def _end_turn(self, work: "asyncio.Task[None]") -> None:
        if not readers.draining:  # The rows that are left then are given back.
            self.turns.pop(work, None)
        self.wakeup.set()  # There is room for another row, which may wait for the end of this one.
