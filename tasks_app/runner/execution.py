"""One run: what the agent is given, how it ends, and what is written when it does."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextvars import ContextVar
from datetime import datetime
from typing import Literal

from django.conf import settings
from django.db import DatabaseError
from msgspec.structs import replace

from a2a.agents import registry
from a2a.dialects.json.json_1_0 import event_of, task_of
from a2a.documents import EventDocument
from a2a.errors import InvalidParams
from a2a.events import Event, MessageAdded
from a2a.run import Run, preferences_of
from a2a.scribe import Scribe
from a2a.states import TaskState
from a2a.types import Message, Role, Task
from tasks_app import clock
from tasks_app.callers.access import owner_for_agents
from tasks_app.database.bridge import bridge
from tasks_app.database.rows import RunRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import ReadEvents, TaskRead, change
from tasks_app.event_log.conversation import conversation_of
from tasks_app.files import run_files
from tasks_app.ids import own_context, uuid7
from tasks_app.runner import retries
from tasks_app.runner.isolation import ProcessCrashed, is_transient_there
from tasks_app.runner.loops import RunLoop
from tasks_app.runner.play import play
from tasks_app.runner.quick import explained, failed_row, warn_of
from tasks_app.runner.retries import Attempt, Verdict, cut_off, interrupted, is_transient, overtime, raised, uncalled
from tasks_app.runner.seat import Seat
from tasks_app.runner.stopped import AgentCrashed, LostLease, WriteFailed
from tasks_app.runner.store import AWAY
from tasks_app.runner.writer import Ending, Writer

log = logging.getLogger(__name__)
Stop = Literal["lost", "released", "cut off"]
FAREWELL = 0.5
"""Seconds for which a process that ends asks for a row that somebody else holds."""
CURRENT: ContextVar["Execution | None"] = ContextVar("CURRENT", default=None)
"""The run whose agent is at work; also in the tasks and callbacks that it makes."""


class Execution:
    """An attempt at a task, from its claim to its last write. It lives on one loop; `lose`, `release`, `look` and
    `start` may be called on any thread."""

    def __init__(self, read: TaskRead, worker: str, threads: Executor) -> None:
        self.read = read
        self.task_id = read.document.id
        self.worker = worker
        self.seat = Seat(threads)
        agent = registry.get(read.agent)
        self.is_async = agent is None or agent.is_async
        self.is_isolated = agent is not None and bool(agent.isolation)
        self.place: RunLoop | None = None
        """The loop on which it lives, or is about to."""
        self.moving = threading.Lock()
        self.deadline: float | None = None
        """When its agent's time is over, on the monotonic clock; None before it begins."""
        self.task: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        """Why it is stopped from outside."""
        self.called = False
        """The agent's function was called, so that this attempt counts."""
        self.finishing = False
        self.unwritten = False
        """Its end could not be written, so that its lease is still this process's."""
        self.ending = False
        """It is ended from outside, for its own loop is blocked."""
        self.run: Run | None = None
        self.writer: Writer | None = None
        self.seen = read.document.seq
        self.early = False
        """There may be a message that came before there was an inbox for it."""
        self.started: datetime = clock.now()

    def start(self, place: RunLoop, ended: Callable[["Execution"], None]) -> None:
        """Begin on that loop unless it has begun elsewhere. A run that waits for a stuck loop is started anew on
        another, and the first to get to it wins."""
        start_together([self], place, ended)

    def move(self, place: RunLoop) -> bool:
        """Choose the loop on which it is to begin; False if it has begun elsewhere."""
        with self.moving:
            if self.task is not None:
                return False
            self.place = place
        return True

    def begin(self, place: RunLoop, ended: Callable[["Execution"], None]) -> None:
        """Begin, on the loop itself, unless another one was chosen meanwhile."""
        with self.moving:
            if self.place is not place or self.task is not None:
                return
            self.task = place.loop.create_task(self._live())
        self.task.add_done_callback(lambda _: ended(self))

    def lose(self) -> None:
        """The task is somebody else's, or nobody's: leave it alone."""
        self._order("lost")

    def release(self) -> None:
        """The process ends: stop, and give the task back or fail it."""
        self._order("released")

    def _order(self, why: Stop) -> None:
        if self.run and not self.finishing:
            # At once, for an agent that looks and blocks its loop.
            self.run.cancelled = True
        self._call(self._stop, why)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Run the function on the run's loop; one that has no loop yet is stopped before it begins."""
        if self.place is not None:
            self.place.call(function, *arguments)
        else:
            function(*arguments)

    def cut_off(self) -> None:
        """The database takes nothing for longer than a lease: stop, and write that as soon as it does."""
        self._stop("cut off")

    def _stop(self, why: Stop) -> None:
        if self.finishing or self.stop:
            return
        self.stop = why
        if self.run:
            self.run.cancelled = True
        if self.task and self.writer:
            self.task.cancel()  # One that has not begun sees the order by itself, and gives its task back.

    def look(self) -> None:
        """There may be a message for the run."""
        self._call(self._look)

    def _look(self) -> None:
        if self.run is None:
            # To read it now would be to lose it: a later one that is heard would pass for both.
            self.early = True
        elif self.task is not None and not self.task.done():
            asyncio.get_running_loop().create_task(self._fill_inbox())

    async def _fill_inbox(self) -> None:
        while page := await self._news():
            for row in page:
                if row.seq > self.seen:
                    self.seen = row.seq
                    if row.kind == "message" and self.run and isinstance(event := event_of(row), MessageAdded):
                        self.run.inbox.show(event.message, row.seq)

    async def _news(self) -> list[EventDocument]:
        """A page of events that it has not seen; none while the database is away, for the heartbeat looks again."""
        context_id = self.read.document.context_id
        wish = ReadEvents(task_id=self.task_id, after=self.seen, context_id=context_id)
        try:
            return await bridge.ask(wish)
        except AWAY as error:
            log.warning("task %s fence %d: its messages were not read: %s", self.task_id, self.read.fence, error)
            return []

    # --------------------------------------------------------------- its life

    async def _live(self) -> None:
        CURRENT.set(self)
        scribe = Scribe(self.task_id, self.read.document.context_id, uuid7)
        self.writer = writer = Writer(self.read, scribe, self.lose, self.cut_off)
        try:
            if ending := await self._ending(scribe, writer):
                self.finishing = True
                await writer.finish(ending)
                outcome = "continued" if writer.continued else ending.run.outcome
                log.info("task %s fence %d: %s", self.task_id, self.read.fence, outcome)
        except LostLease:
            log.info("task %s fence %d: the lease is gone, its result is dropped", self.task_id, self.read.fence)
        except (WriteFailed, Exception):
            # The lease runs out and the task is taken up again.
            self.unwritten = True
            log.exception("task %s fence %d could not be finished", self.task_id, self.read.fence)
        # A write in the background may have failed, which ended the run.
        self.unwritten = self.unwritten or isinstance(writer.failed, WriteFailed | Exception)

    async def _ending(self, scribe: Scribe, writer: Writer) -> Ending | None:
        """How it ends; None if that is written already, or for others to say."""
        try:
            return await self._outcome(scribe, writer)
        except asyncio.CancelledError:
            if writer.ended is not None and self.stop != "lost":
                return Ending(None, self._row(writer.ended))  # The agent has given its last action.
            if self.stop == "cut off":
                return self._judged(cut_off(self._attempt, settings.A2A_LEASE_SECONDS))
            if self.stop == "released":
                await asyncio.shield(self.give_back())
            else:
                log.info("task %s fence %d: stopped", self.task_id, self.read.fence)
            return None

    async def _outcome(self, scribe: Scribe, writer: Writer) -> Ending:
        """Runs the agent; how that ended."""
        limit = asyncio.timeout(self.read.timeout)
        if self.stop:
            raise asyncio.CancelledError
        try:
            run = await self._prepare(scribe)
            async with limit:
                self.called = True
                self.deadline = time.monotonic() + self.read.timeout
                await play(run, writer.accept, self.seat)
        except InvalidParams as error:
            problem = "; ".join(f"{field}: {sentence}" for field, sentence in error.violations)
            return Ending(scribe.explain(TaskState.REJECTED, clock.now(), problem), self._row("rejected"))
        except Exception as error:  # an agent may raise anything; logged with its reference
            if self.stop:
                # It was told to end: what it raises about that is no failure of its own.
                raise asyncio.CancelledError from error
            if writer.ended is not None:
                log.warning("task %s: raised after its agent's last action", self.task_id, exc_info=error)
                return Ending(None, self._row(writer.ended))
            if isinstance(error, TimeoutError) and limit.expired():
                log.warning(
                    "task %s fence %d: agent %s took longer than its timeout of %g s",
                    self.task_id, self.read.fence, self.read.agent, self.read.timeout,
                )  # fmt: skip
                row = replace(self._row("failed"), traceback=self.seat.stack())
                return Ending(overtime(self._attempt, self.read.timeout).event, row)
            return self._failed(error)
        row = replace(self._row(writer.ended or "completed"), traceback=warn_of(run))
        return Ending(None if writer.ended else scribe.status(TaskState.COMPLETED, clock.now()), row)

    async def _prepare(self, scribe: Scribe) -> Run:
        agent = registry.get(self.read.agent)
        if agent is None:
            raise LookupError(f"no agent {self.read.agent} in this process")
        task = task_of(self.read.document)
        if self.writer:
            self.writer.known = task
        asked = [message for message in task.history if message.role is Role.USER]
        scribe.artifact_id = f"answer-{len(asked)}"
        earlier = None
        if len(asked) > 1 or self.read.document.context_id != own_context(self.task_id):
            earlier = await bridge.ask(
                DoSlowly(
                    lambda: conversation_of(self.read.owner_id, task.context_id, self.task_id), self.read.owner_id
                ),
                patience=settings.A2A_LEASE_SECONDS,
            )
        preferences = preferences_of(self.read.wants)
        if preferences.caller is None:
            sender = await bridge.ask(DoSlowly(lambda: owner_for_agents(self.read.owner_id), self.read.owner_id))
            preferences = replace(preferences, caller=sender)
        self.run = Run(
            agent, task_id=self.task_id, context_id=task.context_id, message=asked[-1], attempt=self.read.attempt,
            history=_said(task), conversation=earlier or (), metadata=task.metadata,
            preferences=preferences, files=run_files,
        )  # fmt: skip
        if self.writer:
            self.writer.inbox = self.run.inbox
        if self.early:
            self._look()
        return self.run

    def _row(self, outcome: str) -> RunRow:
        return RunRow(
            task_id=self.task_id, fence=self.read.fence, worker=self.worker, started_at=self.started,
            ended_at=clock.now(), outcome=outcome,
        )  # fmt: skip

    def _failed(self, error: Exception) -> Ending:
        """Judge what the agent raised: the end of the task, or a pause before the next attempt."""
        if not self.called and isinstance(error, AWAY):
            log.warning("task %s fence %d: not begun, the database is away: %s", self.task_id, self.read.fence, error)
            verdict = uncalled(self._attempt, "The database was away before the agent was called.")
            return self._judged(verdict)._replace(delay=retries.spread(retries.BACKOFF))
        words, reference = explained(f"task {self.task_id} fence {self.read.fence}", error)
        # An agent that ends its thread or loop is like one that kills its process: another attempt may go well.
        transient = isinstance(error, AgentCrashed) or is_transient(self.read.agent, error) or is_transient_there(error)
        verdict = raised(self._attempt, error, words, transient=transient)
        row = failed_row(self.task_id, self.read.fence, self.worker, self.started, reference, error)
        if isinstance(error, ProcessCrashed):
            row = replace(row, outcome="crashed")
        return Ending(verdict.event, row, verdict.delay)

    def _judged(self, verdict: Verdict) -> Ending:
        return Ending(verdict.event, self._row(verdict.outcome), verdict.delay, verdict.attempts)

    async def give_back(self) -> None:
        """End the attempt because the process ends: what the agent has said so far is kept, and a call counts."""
        if self.finishing:
            return  # The agent has ended, and its last write is under way.
        # A thread that has not begun with it will not.
        unbegun = self.seat.work is not None and self.seat.work.cancel()
        if self.called and not unbegun:
            verdict = interrupted(self._attempt)
        else:
            verdict = uncalled(self._attempt, "The server is going down.")
        if self.writer is not None and self.writer.ended is not None:
            await self._end_outside([], self._row(self.writer.ended))  # The agent has given its last action.
        else:
            await self._end_outside([verdict.event], self._row(verdict.outcome), attempts=verdict.attempts)

    async def overrun(self, sentence: str, stack: str) -> None:
        """Fail the run on a loop that is not its own, which its agent blocks beyond its timeout."""
        if self.finishing or self.stop:
            return
        event = Scribe(self.task_id, self.read.document.context_id, uuid7).explain(
            TaskState.FAILED, clock.now(), sentence
        )
        await self._end_outside([event], replace(self._row("failed"), traceback=stack))
        self.lose()

    async def _end_outside(self, events: list[Event], row: RunRow, attempts: int = 0) -> None:
        document, writer = self.read.document, self.writer
        said = writer.buffer if writer else []
        item = change(
            document.id, document.context_id, [*said, *events], now=clock.now(), actor="runner",
            fence=self.read.fence, attempts=attempts, run=row, files=writer.files if writer else [],
        )  # fmt: skip
        try:
            if await bridge.ask(item, patience=FAREWELL):
                log.info("task %s fence %d: %s", self.task_id, self.read.fence, row.outcome)
        except (DatabaseError, *AWAY) as error:
            log.warning(
                "task %s fence %d: could not be given back, its lease runs out: %s",
                self.task_id, self.read.fence, error,
            )  # fmt: skip

    @property
    def _attempt(self) -> Attempt:
        read = self.read
        return Attempt(self.task_id, read.document.context_id, read.agent, read.attempt, read.max_attempts)


def start_together(runs: Sequence[Execution], place: RunLoop, ended: Callable[[Execution], None]) -> None:
    """Begin the runs on that loop. A wake-up of a loop is a system call, so one does for all."""

    def begin(chosen: Sequence[Execution]) -> None:
        for run in chosen:
            run.begin(place, ended)

    if chosen := [run for run in runs if run.move(place)]:
        place.call(begin, chosen)


def _said(task: Task) -> tuple[Message, ...]:
    return (*task.history, task.status.message) if task.status.message else task.history
