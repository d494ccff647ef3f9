"""The writer of a run's events, grouped so that a token stream is not a commit a token, under its fence."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import check_encodable, document
from a2a.documents import TaskDocument
from a2a.events import ArtifactAdded, Event, StatusChanged, fold, status_of
from a2a.inbox import Inbox
from a2a.run import Action, Failure
from a2a.scribe import Scribe, ends_run, merge
from a2a.states import INTERRUPTED, TaskState
from a2a.types import Task
from tasks_app import clock
from tasks_app.database.rows import FileRow, RunRow
from tasks_app.event_log import TaskRead, change, last_status
from tasks_app.files import has_large, store_action
from tasks_app.runner.stopped import LostLease, MessageWaits, WriteFailed
from tasks_app.runner.store import store

log = logging.getLogger(__name__)
PAUSE = 0.025
"""Seconds between two writes of a run; the first chunk goes at once."""
FULL = 16_384
"""Characters of text that are written without waiting."""
SHORT = 64
"""Events up to which a run keeps the task in mind."""


ANSWERS = frozenset({TaskState.COMPLETED}) | INTERRUPTED
"""How an agent ends its run with an answer to all that was said. A failure, a refusal and a cancellation are final
whatever waits."""


class Ending(NamedTuple):
    """How a run ends."""

    event: Event | None
    """None where an action of the agent was the end; it is in the buffer."""
    run: RunRow
    delay: float | None = None
    """Seconds before the next attempt."""
    attempts: int = 0
    """-1 where the agent was not called."""


class Writer:
    """The writer of one run, on the runner's loop."""

    def __init__(self, read: TaskRead, scribe: Scribe, lost: Callable[[], None], cut_off: Callable[[], None]) -> None:
        self.read = read
        self.scribe = scribe
        self.lost = lost
        """Called when a write in the background finds the lease gone."""
        self.cut_off = cut_off
        """Called when a write has been refused for as long as a lease."""
        self.seq = read.run_seq
        """The last event of the task that is this run's."""
        self.ends = asyncio.get_running_loop().time() + read.timeout
        """On the loop's clock: when the run must have ended."""
        self.continued = False
        """Whether the run ended before its agent had heard the newest message, so that the task goes on."""
        self.buffer: list[Event] = []
        self.files: list[FileRow] = []
        """Files of the parts in the buffer that are stored apart."""
        self.size = 0
        self.total = read.size
        """Characters of all events of the task, as far as this run knows."""
        self.events = read.document.seq
        """Events of the task, likewise."""
        self.ended: str | None = None
        """The state in which an action has left the task; its event is in the buffer."""
        self.lock = asyncio.Lock()
        self.last = float("-inf")
        self.timer: asyncio.Task[None] | None = None
        self.hurry = asyncio.Event()
        """The run is at its end: what waits is written now."""
        self.known: Task | None = None
        """The task after what was written, as long as there is little of it."""
        self.written = 0
        self.inbox = Inbox()
        """The run's."""
        self.failed: BaseException | None = None
        """The error of a write that was not done."""

    async def accept(self, action: Action) -> None:
        """Takes an action of the agent. Raises LostLease, WriteFailed, TooLarge and Failure."""
        if has_large(action.parts):
            action, rows = await store_action(action, self.read.document.id, self.files)
            self.files += rows
        event = self.scribe.event(action, clock.now())
        check_encodable(event)
        self._check_growth(_size(event))
        together = merge(self.buffer[-1], event) if self.buffer else None
        self.buffer[-1:] = [together] if together else [*self.buffer[-1:], event]
        self.size += _size(event)
        if ends_run(action) and (status := status_of(event)):
            self.ended = status.state.value  # Written by finish, together with the run's row.
            return
        if self.size >= FULL:
            # An agent that is stopped meanwhile leaves the write alone: the next one must know what became of it.
            await asyncio.shield(asyncio.create_task(self.flush()))
        elif self.timer is None or self.timer.done():
            # Not awaited even when it is due: an agent that ends in the same turn has one write instead of two.
            wait = self.last + PAUSE - asyncio.get_running_loop().time()
            self.timer = asyncio.create_task(self._later(max(wait, 0.0)))

    def _check_growth(self, size: int) -> None:
        """Raises Failure when the task may not grow by an event of that size."""
        if (most := settings.A2A_TASK_CHARACTERS) < self.total + self.size + size:
            raise Failure(f"The agent has written more than a task may hold: {most:,} characters.")
        if (most := settings.A2A_TASK_EVENTS) <= self.events + len(self.buffer):
            raise Failure(f"The agent has written more than a task may hold: {most:,} events.")

    async def _later(self, seconds: float) -> None:
        """Write what waits after so many seconds, and then what has come meanwhile: the agent may give nothing more for
        a long time."""
        try:
            while True:
                if seconds:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await self.hurry.wait()
                await self.flush()
                if not self.buffer or self.ended is not None or self.hurry.is_set():
                    return
                seconds = PAUSE
        except (LostLease, WriteFailed, Exception) as error:  # told to finish, or ends the run now
            self.failed = error
            if not isinstance(error, LostLease):
                log.warning("task %s: a write failed, the run is given up", self.read.document.id, exc_info=error)
            if not self.hurry.is_set():
                self.lost()

    async def flush(self, ending: Ending | None = None) -> None:
        """Writes what is buffered, and with the last of it the run's row. Raises LostLease and WriteFailed."""
        async with self.lock:
            if self.ended is not None and ending is None:
                return  # The agent's last action is there, and is written by finish.
            events, self.buffer, self.size = self.buffer, [], 0
            files, self.files = self.files, []
            if not events:
                return
            snapshot = self._snapshot(events, last=ending is not None)
            try:
                try:
                    await self._write(events, files, ending, snapshot)
                except MessageWaits:
                    # The agent has answered less than was said: it is called again, with the newest message.
                    await self._write(_open_again(events), files, self._another_turn(ending))
                    self.continued = True
            except (LostLease, WriteFailed) as error:
                self.failed = error  # What comes after it has no place in the log.
                raise
            self.last = asyncio.get_running_loop().time()

    async def _write(
        self, events: list[Event], files: list[FileRow], ending: Ending | None, snapshot: TaskDocument | None = None
    ) -> None:
        """Raises LostLease, WriteFailed and MessageWaits."""
        claimed, status = self.read.document, last_status(events)
        answers = ending is not None and status is not None and status.state in ANSWERS
        item = change(
            claimed.id, claimed.context_id, events, now=clock.now(), actor="agent", fence=self.read.fence,
            run=ending.run if ending else None, snapshot=snapshot, files=files, with_deliveries=self.read.pushes,
            after=self.seq, delay=ending.delay if ending else None, attempts=ending.attempts if ending else 0,
            newest_message=max(claimed.seq, self.inbox.cursor) if answers else None,
        )  # fmt: skip
        self.seq = await store(item, self.ends, self.cut_off)
        self.total += item.size
        self.events += len(events)

    def _another_turn(self, ending: Ending | None) -> Ending | None:
        """The end of a run whose task goes on; it counts against no limit of attempts, for the message is new."""
        return ending and ending._replace(run=replace(ending.run, outcome="continued"), attempts=-self.read.attempt)

    def _snapshot(self, events: list[Event], *, last: bool) -> TaskDocument | None:
        """The task after the last write, as far as this run knows: folding it from the log would be a read and a write
        more. Of long runs it is left to those."""
        if self.known is None:
            return None
        self.written += len(events)
        self.known = fold(self.known, events) if self.written <= SHORT else None
        if not last or self.known is None:
            return None
        found = document(self.known, self.read.document.seq + self.written)
        return found if len(found.artifacts or "") + len(found.history or "") <= FULL else None

    async def finish(self, ending: Ending) -> None:
        """The last write of the run. Raises LostLease and WriteFailed."""
        if self.timer is not None and not self.lock.locked():
            self.timer.cancel()  # What it would write goes with the last write.
        elif self.timer is not None:
            # A write under way is waited for: what became of it decides about this one.
            self.hurry.set()
            await self.timer
        async with self.lock:
            pass  # Or a write whose caller was stopped is under way.
        if self.failed is not None:
            raise self.failed
        if ending.event is not None:
            self.buffer.append(ending.event)
        await self.flush(ending)


def _open_again(events: list[Event]) -> list[Event]:
    """The events, of which the last leaves the task submitted, with what the agent says in it."""
    *others, last = events
    status = status_of(last)
    if status is None:
        raise TypeError(f"a run ended with {type(last).__name__}")
    return [*others, StatusChanged(status=replace(status, state=TaskState.SUBMITTED))]


def _size(event: Event) -> int:
    if not isinstance(event, ArtifactAdded):
        return 0
    return sum(len(part.text or "") + len(part.raw or b"") for part in event.artifact.parts)
