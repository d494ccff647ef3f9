"""One run: the values that the agent gets, and the end of the run, which is written in one of many ways."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from datetime import datetime
from typing import Literal

from django.conf import settings
from msgspec.structs import replace

from a2a.agents import Agent
from a2a.dialects.json.json_1_0 import event_of, task_of
from a2a.documents import EventDocument
from a2a.errors import InvalidParams
from a2a.events import MessageAdded
from a2a.run import Run
from a2a.scribe import Scribe
from a2a.states import TaskState
from a2a.types import Role
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.rows import RunRow
from tasks_app.event_log import ReadEvents, TaskRead
from tasks_app.ids import uuid7
from tasks_app.log_fields import run_fields
from tasks_app.runner import retries
from tasks_app.runner.failures import explain, failed_row, judge_safely
from tasks_app.runner.isolation import NotStarted, is_transient_there
from tasks_app.runner.loops import RunLoop
from tasks_app.runner.money import pay_again
from tasks_app.runner.outside import end_outside
from tasks_app.runner.play import play
from tasks_app.runner.preparing import prepare_run
from tasks_app.runner.quick import warn_of
from tasks_app.runner.retries import Attempt, Verdict, is_transient
from tasks_app.runner.seat import Seat
from tasks_app.runner.stopped import FileRefused, LostLease, ProcessCrashed, WriteFailed, exception_of
from tasks_app.runner.writer import PAUSE, Ending, Writer

log = logging.getLogger(__name__)
Stop = Literal["lost", "released", "cut off", "crashed"]
ENDERS_SECONDS = 5.0
"""Seconds for which a run waits until its end is written from outside. Then it charges costs that are not written."""
CURRENT: ContextVar["Execution | None"] = ContextVar("CURRENT", default=None)
"""The run whose agent is at work, also within asyncio tasks and callbacks that the agent makes."""


class Execution:
    """A run, from its claim to its last write. It lives on one loop. Any thread may call `move`, `look`, `cancel`,
    `release` and `lose`."""

    def __init__(self, read: TaskRead, agent: Agent | None, worker: str, threads: Executor) -> None:
        self.read = read
        self.agent = agent
        """The agent as it was when the task was claimed; None if this process has none of its name."""
        self.task_id = read.document.id
        self.worker = worker
        self.seat = Seat(threads)
        self.is_async = agent is None or agent.is_async
        self.is_isolated = agent is not None and bool(agent.isolation)
        self.place: RunLoop | None = None
        """The loop on which it lives, or will begin."""
        self.moving = threading.Lock()
        self.deadline = float("inf")
        """The monotonic time when its timeout ends, or when it was stopped; infinite before its agent is called."""
        self.task: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        """The reason why it was stopped from outside."""
        self.crash: Exception | None = None
        """The error of a run that was stopped because it crashed."""
        self.was_called = False
        """True once the agent's function was called, so that this attempt counts."""
        self.finishing = False
        self.is_unwritten = False
        """True if its end could not be written, so that its lease is still this process's."""
        self.ending = False
        """True once it is being ended from outside, because its agent does not end."""
        self.enders = 0
        """The writes of its end from outside that are under way."""
        self.run: Run | None = None
        self.writer: Writer | None = None
        self.cursor = read.document.seq
        """The last event that was read for messages."""
        self.is_look_due = False
        """True if a message may have come before there was an inbox for it."""
        self.since: datetime = clock.now()

    def move(self, place: RunLoop) -> bool:
        """Choose the loop on which it will begin; return False if it has begun elsewhere."""
        with self.moving:
            if self.task is not None:
                return False
            self.place = place
        return True

    def begin(self, place: RunLoop, on_end: Callable[["Execution"], None]) -> None:
        """Begin unless another loop was chosen meanwhile. Called on the loop."""
        with self.moving:
            if self.place is not place or self.task is not None:
                return
            self.task = place.loop.create_task(self._live())
        self.task.add_done_callback(lambda _: on_end(self))

    def lose(self) -> None:
        """Stop without a write: the task is another run's, or has ended."""
        self._order("lost")

    def release(self) -> None:
        """Stop because the process ends: release the task, or fail it."""
        self._order("released")

    def _order(self, why: Stop) -> None:
        if self.run and not self.finishing:
            # At once: an agent that blocks its loop can still see the flag.
            self.run.cancelled = True
        self._call(self._stop, why)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call the function on the run's loop, or here if it has no loop yet: it is stopped before it begins."""
        if self.place is not None:
            self.place.call(function, *arguments)
        else:
            function(*arguments)

    def cut_off(self) -> None:
        """Stop because no write was accepted for longer than a lease. The end is written once writes are accepted."""
        self._stop("cut off")

    def crash_by(self, error: BaseException) -> None:
        """Fail because an asyncio task or a callback of the agent raised an exception that ends loops. Called on the
        thread of its loop."""
        if not self.finishing and not self.stop:
            self.crash = exception_of(error)
            self._stop("crashed")

    def _stop(self, why: Stop) -> None:
        if self.finishing or self.stop:
            return
        self.stop = why
        if self.was_called:
            self.deadline = time.monotonic()
        if self.run:
            self.run.cancelled = True
        if self.task and self.writer:
            self.task.cancel()  # A run that has not begun finds the reason itself, and releases its task.

    def look(self) -> None:
        """Read new messages for the run."""
        self._call(self._look)

    def _look(self) -> None:
        if self.run is None:
            # A message that is read before there is an inbox would be lost: a later one would advance the cursor.
            self.is_look_due = True
        elif self.task is not None and not self.task.done():
            asyncio.get_running_loop().create_task(self._fill_inbox())

    async def _fill_inbox(self) -> None:
        while page := await self._news():
            for row in page:
                if row.seq > self.cursor:
                    self.cursor = row.seq
                    if row.kind == "message" and self.run and isinstance(event := event_of(row), MessageAdded):
                        self.run.inbox.show(event.message, row.seq)

    async def _news(self) -> list[EventDocument]:
        """Return a page of new events; none while the database is away, because the heartbeat looks again."""
        context_id = self.read.document.context_id
        item = ReadEvents(task_id=self.task_id, after=self.cursor, context_id=context_id)
        try:
            return await bridge.ask(item)
        except AWAY as error:
            log.warning("task %s fence %d: its messages were not read: %s", self.task_id, self.read.fence, error)
            return []

    # ------------------------------------------------------------------- life

    async def _live(self) -> None:
        CURRENT.set(self)
        scribe = Scribe(self.task_id, self.read.document.context_id, uuid7)
        self.writer = writer = Writer(self.read, scribe, self.lose, self.cut_off)
        try:
            if ending := await self._ending(scribe, writer):
                self.finishing = True
                await writer.finish(ending)
                outcome = "continued" if writer.goes_on else ending.run.outcome
                log.info("task %s fence %d: %s", self.task_id, self.read.fence, outcome)
        except LostLease:
            log.info("task %s fence %d: the lease is gone, its result is dropped", self.task_id, self.read.fence)
        except (WriteFailed, Exception, asyncio.CancelledError):
            # The lease runs out, and the sweeper judges the task. Only an agent cancels this task in its last write.
            self.is_unwritten = True
            log.exception("task %s fence %d could not write its end", self.task_id, self.read.fence)
        # A write in the background may have failed, which ended the run.
        self.is_unwritten = self.is_unwritten or isinstance(writer.error, WriteFailed | Exception)
        if not self.is_unwritten:
            await self._wait_for_enders()
            writer.charge_late()

    async def _wait_for_enders(self) -> None:
        """Wait until the end from outside is written, with the cost, so that this cost is not charged again."""
        ends = time.monotonic() + ENDERS_SECONDS
        while self.enders and time.monotonic() < ends:
            with contextlib.suppress(asyncio.CancelledError):  # the agent is over; the cost is not charged yet
                await asyncio.sleep(PAUSE)

    async def _ending(self, scribe: Scribe, writer: Writer) -> Ending | None:
        """Return how the run ends; None if its end is written already, or belongs to another process."""
        try:
            return await self._outcome(scribe, writer)
        except asyncio.CancelledError:
            if writer.end_state is not None and self.stop != "lost":
                return Ending(None, self._row(writer.end_state))  # The agent's last action has ended the run.
            if self.crash and self.stop != "lost":
                return self._failed(self.crash)
            if self.stop == "cut off":
                return self._ending_by(retries.judge_outage(self._attempt, settings.A2A_LEASE_SECONDS))
            if self.stop == "released":
                await asyncio.shield(self.give_back())
            else:
                log.info("task %s fence %d: stopped", self.task_id, self.read.fence)
            return None

    async def _outcome(self, scribe: Scribe, writer: Writer) -> Ending:
        """Run the agent; return how that ended."""
        limit = asyncio.timeout(self.read.timeout)
        if self.stop:
            raise asyncio.CancelledError
        try:
            self.read = await pay_again(self.read, self.agent)
            run = await self._prepare(scribe)
            async with limit:
                self.was_called = True
                self.deadline = time.monotonic() + self.read.timeout
                await play(run, writer.accept, self.seat)
            if self.crash:
                raise asyncio.CancelledError
        except InvalidParams as error:
            problem = "; ".join(f"{field}: {sentence}" for field, sentence in error.violations)
            return Ending(scribe.explain(TaskState.REJECTED, clock.now(), problem), self._row(TaskState.REJECTED.value))
        except (Exception, asyncio.CancelledError) as error:  # an agent may raise anything; logged with its reference
            if self.stop:
                # The run was stopped: an error that the agent raises because of that is no failure.
                raise asyncio.CancelledError from error
            if not self.was_called and isinstance(error, asyncio.CancelledError):
                return self._postpone("Another run of the agent has cancelled this one.", error)
            if writer.end_state is not None:
                log.warning("task %s: its agent raised an error after its last action", self.task_id, exc_info=error)
                return Ending(None, self._row(writer.end_state))
            if isinstance(error, TimeoutError) and limit.expired():
                return self._time_out(self.seat.stack())
            # A cancellation that was not ordered is the agent's own: libraries cancel the task in which they are used.
            return self._failed(exception_of(error))
        row = replace(self._row(writer.end_state or TaskState.COMPLETED.value), traceback=warn_of(run))
        return Ending(None if writer.end_state else scribe.status(TaskState.COMPLETED, clock.now()), row)

    def _time_out(self, stack: str, how: str = "") -> Ending:
        read, what = self.read, f"took longer than its timeout of {self.read.timeout:g} s"
        fields = run_fields(self.task_id, read.agent, f"it {what}")
        log.warning("task %s fence %d: agent %s %s", self.task_id, read.fence, read.agent, what, extra=fields)
        row = replace(self._row(TaskState.FAILED.value), traceback=stack)
        return Ending(retries.judge_timeout(self._attempt, read.timeout, how).event, row)

    async def _prepare(self, scribe: Scribe) -> Run:
        if self.agent is None:
            raise LookupError(f"this process has no agent {self.read.agent}")
        task = task_of(self.read.document)
        if self.writer:
            self.writer.task = task
        messages = [message for message in task.history if message.role is Role.USER]
        scribe.artifact_id = f"answer-{len(messages)}"
        self.run = await prepare_run(self.read, self.agent, task, messages)
        if self.writer:
            self.writer.inbox = self.run.inbox
            self.writer.watch(self.run.spending)
        if self.is_look_due:
            self._look()
        return self.run

    def _row(self, outcome: str) -> RunRow:
        return RunRow(
            task_id=self.task_id,
            fence=self.read.fence,
            worker=self.worker,
            started_at=self.since,
            ended_at=clock.now(),
            outcome=outcome,
        )

    def _failed(self, error: Exception) -> Ending:
        return judge_safely(error, self._judge)

    def _judge(self, error: Exception) -> Ending:
        """Judge an error of the agent: the end of the task, or a pause before the next attempt."""
        if isinstance(error, NotStarted):
            return self._postpone("The process of the agent could not be started.", error.__cause__)
        if not self.was_called and isinstance(error, AWAY):
            return self._postpone("The database was away before the agent was called.", error)
        words, reference = explain(f"task {self.task_id} fence {self.read.fence}", self.task_id, self.read.agent, error)
        transient = isinstance(error, ProcessCrashed | FileRefused) or is_transient(self.agent, error)
        transient = transient or is_transient_there(error)
        verdict = retries.judge_error(self._attempt, error, words, transient=transient)
        row = failed_row(self.task_id, self.read.fence, self.worker, self.since, reference, error)
        if isinstance(error, ProcessCrashed):
            row = replace(row, outcome="crashed")
        return Ending(verdict.event, row, verdict.delay)

    def _postpone(self, why: str, cause: BaseException | None) -> Ending:
        """Release the task, and have it claimed again after a pause, because of a fault of this process."""
        log.warning("task %s fence %d: its agent was not called. %s %r", self.task_id, self.read.fence, why, cause)
        return self._ending_by(retries.judge_release(self._attempt, why))._replace(
            delay=retries.spread(retries.BACKOFF)
        )

    def _ending_by(self, verdict: Verdict) -> Ending:
        return Ending(verdict.event, self._row(verdict.outcome), verdict.delay, verdict.attempts)

    async def give_back(self) -> None:
        """Release or fail the task because the process ends. What the agent has written stays, and its call counts."""
        if self.finishing:
            return  # The last write is under way.
        # A thread that has not begun with the agent never will.
        never_began = self.seat.work is not None and self.seat.work.cancel()
        if self.was_called and not never_began:
            verdict = retries.judge_interruption(self._attempt)
        else:
            verdict = retries.judge_release(self._attempt, "The server is going down.")
        await self._end_outside(self._ending_by(verdict))

    async def overrun(self, how: str, stack: str) -> None:
        """Fail the run, unless it was stopped for another reason than a crash. `how` ends the sentence for the caller.

        Called on another loop, because its agent goes on after its deadline.
        """
        if not self.finishing and (self.crash or not self.stop):
            await self._end_outside(self._failed(self.crash) if self.crash else self._time_out(stack, how))
            self.stop = "lost"

    async def end_with_loop(self) -> None:
        """Judge the run as lost, because the thread of its loop has ended. Called on another loop."""
        if self.stop != "lost" and self.task and not self.task.done():
            lost = self._ending_by(retries.judge_loss(self._attempt))
            await self._end_outside(self._failed(self.crash) if self.crash else lost)
            self.stop = "lost"

    def is_overdue(self, seconds: float) -> bool:
        """Return whether its async agent goes on so many seconds after its deadline.

        The run of a sync agent ends by itself, because it does not wait for its thread.
        """
        can_end = not self.is_async or self.finishing or self.stop == "released"
        return not can_end and time.monotonic() > self.deadline + seconds

    def cancel(self) -> None:
        """Cancel an agent again that has ignored its cancellation."""
        if self.task is not None:
            self._call(self.task.cancel)

    async def _end_outside(self, ending: Ending) -> None:
        with self.moving:
            self.enders += 1
        try:
            await end_outside(self.read, self.writer, ending, self._row)
        finally:
            with self.moving:
                self.enders -= 1

    @property
    def _attempt(self) -> Attempt:
        read = self.read
        return Attempt(self.task_id, read.document.context_id, read.agent, read.attempt, read.max_attempts)
