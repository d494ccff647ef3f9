"""What a run writes: its events, grouped so that a token stream is not a commit a token, under its fence."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError

from a2a.dialects.protojson import encodable
from a2a.events import ArtifactAdded, Event, status_of
from a2a.run import Action
from a2a.scribe import Scribe, ends_run, merged
from tasks_app import clock
from tasks_app.bridge import bridge
from tasks_app.event_log import Appended, TaskRead, change
from tasks_app.rows import RunRow
from tasks_app.runner.stopped import LostLease, WriteFailed

log = logging.getLogger(__name__)
PAUSE = 0.025
"""Seconds between two writes of a run; the first chunk goes at once."""
FULL = 16_384
"""Characters of text that are written without waiting."""


class Writer:
    """Of one run, on the runner's loop."""

    def __init__(self, read: TaskRead, scribe: Scribe, lost: Callable[[], None]) -> None:
        self.read = read
        self.scribe = scribe
        self.lost = lost
        """Called when a write in the background finds the lease gone."""
        self.buffer: list[Event] = []
        self.size = 0
        self.ended: str | None = None
        """The state in which an action has left the task; its event is in the buffer."""
        self.lock = asyncio.Lock()
        self.last = float("-inf")
        self.timer: asyncio.Task[None] | None = None
        self.hurry = asyncio.Event()
        """The run is at its end: what waits is written now."""
        self.failed: BaseException | None = None
        """What a write in the background ended with."""

    async def accept(self, action: Action) -> None:
        """Takes an action of the agent. Raises LostLease and WriteFailed."""
        event = self.scribe.event(action, clock.now())
        encodable(event)
        together = merged(self.buffer[-1], event) if self.buffer else None
        self.buffer[-1:] = [together] if together else [*self.buffer[-1:], event]
        self.size += _size(event)
        if ends_run(action) and (status := status_of(event)):
            self.ended = status.state.value  # Written by finish, together with the run's row.
            return
        wait = self.last + PAUSE - asyncio.get_running_loop().time()
        if wait <= 0 or self.size >= FULL:
            await self.flush()
        elif self.timer is None or self.timer.done():
            self.timer = asyncio.create_task(self._later(wait))

    async def _later(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.hurry.wait()
        try:
            await self.flush()
        except (LostLease, WriteFailed, Exception) as error:  # told to finish, or ends the run now
            self.failed = error
            if not isinstance(error, LostLease):
                log.warning("task %s: a write failed, the run is given up", self.read.document.id, exc_info=error)
            if not self.hurry.is_set():
                self.lost()

    async def flush(self, run: RunRow | None = None) -> None:
        """Writes what is buffered, and the run's row with it. Raises LostLease."""
        async with self.lock:
            events, self.buffer, self.size = self.buffer, [], 0
            if not events:
                return
            document = self.read.document
            item = change(
                document.id, document.context_id, events, now=clock.now(), actor="agent",
                attempt=self.read.attempt, run=run,
            )  # fmt: skip
            try:
                result = await bridge.ask(item)
            except (OperationalError, InterfaceError) as error:
                raise WriteFailed from error
            self.last = asyncio.get_running_loop().time()
            if not isinstance(result, Appended):
                raise LostLease

    async def finish(self, event: Event | None, run: RunRow) -> None:
        """The last write of the run. Raises LostLease."""
        if self.timer is not None:
            # A write under way is waited for: what became of it decides about this one.
            self.hurry.set()
            await self.timer
        if self.failed is not None:
            raise self.failed
        if event is not None:
            self.buffer.append(event)
        await self.flush(run)


def _size(event: Event) -> int:
    if not isinstance(event, ArtifactAdded):
        return 0
    return sum(len(part.text or "") + len(part.raw or b"") for part in event.artifact.parts)
