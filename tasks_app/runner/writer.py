"""The writer of a run's events under its fence, in groups: a stream of tokens must not be a commit for each token."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings
from msgspec.structs import replace

from a2a.actions import Action, Chunk, Say
from a2a.dialects.json.json_1_0 import document as document_of
from a2a.dialects.json.json_1_0 import encoded_size
from a2a.documents import TaskDocument
from a2a.events import Event, StatusChanged, fold, status_of
from a2a.inbox import Inbox
from a2a.scribe import Scribe, ends_run, merge
from a2a.spending import Spending
from a2a.states import INTERRUPTED, TaskState
from a2a.types import Task
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errands import insist
from tasks_app.database.errors import AWAY
from tasks_app.database.locks import LockRefused
from tasks_app.database.rows import FileRow, PositionRow, RunRow
from tasks_app.event_log import Spend, TaskRead, change, last_status, late_cost
from tasks_app.files import has_large
from tasks_app.runner.growth import added_size, check_growth
from tasks_app.runner.stopped import LostLease, MessageWaits, WriteFailed
from tasks_app.runner.store import store, store_files

log = logging.getLogger(__name__)
PAUSE = 0.025
"""Seconds between two writes of a run. The first chunk is written at once."""
CLOSING = 0.3
"""Seconds for which the end of a run from outside waits for a write under way."""
FULL = 16_384
"""Characters of events in the buffer that are written without a pause."""
SHORT = 64
"""Events of a run that are folded in memory, at most."""
ANSWERS = frozenset({TaskState.COMPLETED}) | INTERRUPTED
"""States that need an agent that has read every message: with a newer one, the task goes on. A failure, a refusal and a
cancellation are final whatever the inbox has."""


class Ending(NamedTuple):
    """The end of a run."""

    event: Event | None
    """The last event; None if an action of the agent was the end, whose event is in the buffer."""
    run: RunRow
    delay: float | None = None
    """Seconds before the next attempt."""
    attempts: int = 0
    """Added to the count of attempts: -1 if the agent was not called."""


class Rest(NamedTuple):
    """The events, files and position that a writer has not written."""

    events: list[Event]
    files: list[FileRow]
    position: PositionRow | None


class Writer:
    """The writer of one run, on the run's loop."""

    def __init__(
        self, read: TaskRead, scribe: Scribe, on_loss: Callable[[], None], on_outage: Callable[[], None]
    ) -> None:
        self.read = read
        self.scribe = scribe
        self.on_loss = on_loss
        """Called when a write in the background fails, for example because the run has lost its lease."""
        self.on_outage = on_outage
        """Called when the database has accepted no write for as long as a lease."""
        self.seq = read.run_seq
        """The last event of the task that this run has written, or was claimed with."""
        self.ends = asyncio.get_running_loop().time() + read.timeout
        """The time on the loop's clock when the run's timeout ends."""
        self.goes_on = False
        """True if the run ended before its agent had read the newest message, so that the task was submitted again."""
        self.buffer: list[Event] = []
        self.files: list[FileRow] = []
        """Files of large parts in the buffer."""
        self.files_under_way: list[FileRow] = []
        """Files of the write under way, which the table may not have yet."""
        self.position: PositionRow | None = None
        """The position that the agent gave with its last action in the buffer, or before."""
        self.size = 0
        """Characters of the events in the buffer."""
        self.total = read.size
        """Characters of all events of the task, as far as this run has read or written them."""
        self.log_length = read.document.seq
        """The number of those events."""
        self.end_state: str | None = None
        """The state to which the agent's last action sets the task; its event is in the buffer."""
        self.lock = asyncio.Lock()
        self.last = float("-inf")
        self.timer: asyncio.Task[None] | None = None
        self.hurry = asyncio.Event()
        """Set at the end of the run: the buffer is written without a pause."""
        self.task: Task | None = None
        """The task after the last write; None once the run has written more than SHORT events."""
        self.count = 0
        """The events that this run has written."""
        self.inbox = Inbox()
        """The inbox of the run."""
        self.spending = Spending(read.limit, read.spent)
        """The cost of the task, as its runs report it."""
        self.reported = read.spent
        """The sum of the reports that are written."""
        self.error: BaseException | None = None
        """The error of a write that failed. Later events have no place in the log."""

    async def accept(self, action: Action) -> None:
        """Take an action of the agent. Raises LostLease, WriteFailed, WrongValue, FileRefused and Failure."""
        if self.error is not None:
            raise self.error  # The run is over, but an agent that ignores its cancellation goes on.
        if has_large(action.parts):
            waiting = [*self.files_under_way, *self.files]
            action, rows = await store_files(action, self.read.document.id, waiting, self.on_outage)
            self.files += rows
        event = self.scribe.event(action, clock.now())
        size, together = encoded_size(event), merge(self.buffer[-1], event) if self.buffer else None
        self.size += added_size(event, size, together)
        check_growth(self.total + self.size, self.log_length + len(self.buffer) + (together is None))
        self.buffer[-1:] = [together] if together else [*self.buffer[-1:], event]
        if isinstance(action, Say | Chunk) and action.position is not None:
            self.position = PositionRow(task_id=self.read.document.id, position=action.position)
        if ends_run(action) and (status := status_of(event)):
            self.end_state = status.state.value  # finish() writes it, together with the run's row.
            return
        if self.size >= FULL:
            # Shielded: if the run is stopped meanwhile, the next write must still know what became of this one.
            await asyncio.shield(asyncio.create_task(self.flush()))
        elif self.timer is None or self.timer.done():
            # Not awaited, even when it is due: an agent that ends in the same turn of the loop has one write, not two.
            wait = self.last + PAUSE - asyncio.get_running_loop().time()
            self.timer = asyncio.create_task(self._later(max(wait, 0.0)))

    async def close(self) -> Rest | None:
        """Return what is not written yet, for the loop that ends the run. Write no more.

        None if a write under way has no result in time, or a write has failed: its events may not be in the log, and
        later ones would follow a gap.
        """
        self.error = closed = self.error or LostLease()
        ends = time.monotonic() + CLOSING
        while self.lock.locked() and time.monotonic() < ends:  # noqa: ASYNC110  # its holder may be on another loop
            await asyncio.sleep(PAUSE)
        if self.lock.locked() or self.error is not closed or not isinstance(closed, LostLease):
            return None
        rest = Rest(self.buffer, self.files, self.position)
        self.buffer, self.files = [], []
        return rest

    def watch(self, spending: Spending) -> None:
        """Write what the run reports, also if no event follows."""
        loop = asyncio.get_running_loop()
        self.spending = spending
        spending.on_report = lambda _: loop.call_soon_threadsafe(self._write_soon)

    @property
    def unwritten(self) -> int | None:
        """The sum of all reports if it is not written yet, else None."""
        return None if self.spending.spent == self.reported else self.spending.spent

    def charge_late(self) -> None:
        """Charge what was reported and not written to the stored budgets, and from now on each report at once. Call it
        after the last write for the run, which may have come from outside it."""
        if self.timer is not None and not self.lock.locked():
            self.timer.cancel()  # A report beside the last write may have set it.
        if not self.read.reserved:
            return
        task_id = self.read.document.id
        rest = self.spending.close(lambda amount: insist(late_cost(task_id, amount))) - self.reported
        if rest > 0:
            self.reported += rest
            insist(late_cost(task_id, rest))

    def _write_soon(self) -> None:
        if (self.timer is None or self.timer.done()) and not self.hurry.is_set() and self.error is None:
            self.timer = asyncio.create_task(self._later(PAUSE))

    async def _write_spending(self) -> None:
        """Write the reports without an event. Raises LostLease."""
        if (spent := self.unwritten) is None:
            return
        read = self.read
        try:
            item = Spend(task_id=read.document.id, fence=read.fence, spent=spent)
            is_ours = await bridge.ask(item, patience=settings.A2A_LEASE_SECONDS)
        except (LockRefused, *AWAY) as error:
            # The next event writes them, or the end of the run.
            log.warning("task %s: a report of its cost was not written yet: %s", read.document.id, error)
            return
        if not is_ours:
            raise LostLease
        self.reported = spent

    async def _later(self, seconds: float) -> None:
        """Write the buffer after a pause, and again until it is empty: the agent may add nothing for a long time."""
        try:
            while True:
                if seconds:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await self.hurry.wait()
                await self.flush()
                if not self.buffer or self.end_state is not None or self.hurry.is_set():
                    return
                seconds = PAUSE
        except (LostLease, WriteFailed, Exception) as error:  # finish() raises it, or it ends the run now
            self.error = error
            if not isinstance(error, LostLease):
                log.warning("task %s: a write failed, the run is given up", self.read.document.id, exc_info=error)
            if not self.hurry.is_set():
                self.on_loss()

    async def flush(self, ending: Ending | None = None) -> None:
        """Write the buffer, and with an ending also the run's row. Raises LostLease and WriteFailed."""
        async with self.lock:
            if self.error is not None:
                raise self.error
            if self.end_state is not None and ending is None:
                return  # finish() writes the agent's last action.
            events, self.buffer, self.size = self.buffer, [], 0
            self.files_under_way = files = self.files
            self.files = []
            if not events:
                await self._write_spending()
                return
            snapshot = self._snapshot(events, last=ending is not None)
            try:
                try:
                    await self._write(events, files, ending, snapshot)
                except MessageWaits:
                    # The agent has not read the newest message: it is called again, with that message.
                    await self._write(_reopen(events), files, self._continue(ending))
                    self.goes_on = True
            except (LostLease, WriteFailed) as error:
                self.error = error
                raise
            except asyncio.CancelledError:
                # An agent has cancelled all tasks of its loop. The events may be in the log or not.
                self.error = WriteFailed()
                raise
            self.files_under_way = []
            self.last = asyncio.get_running_loop().time()

    async def _write(
        self, events: list[Event], files: list[FileRow], ending: Ending | None, snapshot: TaskDocument | None = None
    ) -> None:
        """Write the events. Raises LostLease, WriteFailed and MessageWaits."""
        document, status, spent = self.read.document, last_status(events), self.unwritten
        answers = ending is not None and status is not None and status.state in ANSWERS
        item = change(
            document.id,
            document.context_id,
            events,
            now=clock.now(),
            actor="agent",
            fence=self.read.fence,
            owner_id=self.read.owner_id,
            run=ending.run if ending else None,
            snapshot=snapshot,
            files=files,
            position=self.position,
            with_deliveries=self.read.pushes,
            after=self.seq,
            delay=ending.delay if ending else None,
            attempts=ending.attempts if ending else 0,
            newest_message=max(document.seq, self.inbox.cursor) if answers else None,
            spent=spent,
            settles=ending is not None and self.read.reserved > 0,
        )
        self.seq = await store(item, self.ends, self.on_outage)
        self.reported = self.reported if spent is None else spent
        self.total += item.size
        self.log_length += len(events)

    def _continue(self, ending: Ending | None) -> Ending | None:
        """Return the end of a run whose task goes on. Attempts are counted from 0 again, because the message is new."""
        return ending and ending._replace(run=replace(ending.run, outcome="continued"), attempts=-self.read.attempt)

    def _snapshot(self, events: list[Event], *, last: bool) -> TaskDocument | None:
        """Return the task after the last write, for a short run: to fold the log costs one more read and write."""
        if self.task is None:
            return None
        self.count += len(events)
        self.task = fold(self.task, events) if self.count <= SHORT else None
        if not last or self.task is None:
            return None
        snapshot = document_of(self.task, self.read.document.seq + self.count)
        return snapshot if snapshot.size <= FULL else None

    async def finish(self, ending: Ending) -> None:
        """Write the end of the run. Raises LostLease and WriteFailed."""
        if self.timer is not None and not self.lock.locked():
            self.timer.cancel()  # The last write takes its events along.
        elif self.timer is not None:
            # The result of a write under way decides about this one.
            self.hurry.set()
            await self.timer
        async with self.lock:
            pass  # Wait for a write whose caller was stopped.
        if self.error is not None:
            raise self.error
        if ending.event is not None:
            self.buffer.append(ending.event)
        await self.flush(ending)


def _reopen(events: list[Event]) -> list[Event]:
    """Return the events with a last one that submits the task again, and keeps the agent's message."""
    *others, last = events
    status = status_of(last)
    if status is None:
        raise TypeError(f"a run ended with {type(last).__name__}")
    return [*others, StatusChanged(status=replace(status, state=TaskState.SUBMITTED))]
