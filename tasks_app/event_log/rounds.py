"""Rounds on the loop of the doors of a process: each looks for rows that are due, at a hint or after A2A_SWEEP_SECONDS.

The keeper, the conductor, the moderator and the responder make rounds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from django.conf import settings

from tasks_app.database.errands import insist
from tasks_app.database.errors import log_failure
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.hints import Reached, hints

log = logging.getLogger(__name__)


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
