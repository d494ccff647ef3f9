"""Quick agents run inside the call, for two seconds at most, before a row is stored: no caller sees them at work."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

from a2a.actions import Action, Reply
from a2a.agents import registry
from a2a.dialects.json.json_1_0 import encoded_size
from a2a.errors import Timeout, Unavailable
from a2a.events import Event, status_of
from a2a.mistakes import WrongValue
from a2a.run import Run
from a2a.scribe import Scribe, merge
from a2a.states import TaskState
from a2a.types import Message
from tasks_app import clock
from tasks_app.database.rows import FileRow, RunRow
from tasks_app.files import has_large, store_action
from tasks_app.ids import uuid7
from tasks_app.log_fields import run_fields
from tasks_app.runner.driver import Driver
from tasks_app.runner.failures import explain, failed_row, judge_safely, reason_of
from tasks_app.runner.growth import added_size, check_growth
from tasks_app.runner.places import NoPlace, Places
from tasks_app.runner.play import Accept, play
from tasks_app.runner.stopped import FileRefused

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
LIMIT = 2.0
"""Seconds that a quick agent may take. Before that, a call may wait as long for a place."""
GRACE = 0.1
"""Seconds that an async agent has to end after its cancellation."""
RETRY_SECONDS = 2
"""Seconds after which a caller that found no place may come again."""
SLOTS = 32
"""Threads of a sync quick agent. It never runs on a lane, where it would delay all callers. An async one gets no new
call while so many of its runs go on beyond their time. There may be more of them: calls that come at once, before any
of them is late, are all played, because most async runs only wait."""
RunFuture = Future[None] | asyncio.Task[None]
"""The future of a run: of its thread, or of its asyncio task."""


class OutOfTime(Exception):
    """Raised when the agent takes longer than LIMIT."""


class Late(Struct, frozen=True):
    """A run beyond its time. Its call was answered, and nothing can stop it."""

    run: Run
    since: float
    """The end of its time, on the monotonic clock."""
    steps: Coroutine[Any, Any, None] | None = None
    """The coroutine of an async agent, which shows where it waits."""


class Threads(ThreadPoolExecutor):
    """The threads of one agent, and its runs beyond their time. An async agent uses no thread.

    An agent that hangs takes no thread of another.
    """

    def __init__(self) -> None:
        super().__init__(SLOTS, thread_name_prefix="quick")
        self.places = Places(SLOTS)
        """Places for runs in threads. A run takes one before its time begins, so that the wait does not count."""
        self.late: dict[RunFuture, Late] = {}
        """Runs beyond their time, by their futures, until they end. That of a sync agent keeps its thread."""

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin in a thread, whose end gives the place back."""
        try:
            future = super().submit(function, *args, **kwargs)
        except BaseException:
            self.places.give_back()
            raise
        future.add_done_callback(lambda _: self.places.give_back())
        return future

    def leave(self, run: Run, future: RunFuture, steps: Coroutine[Any, Any, None] | None = None) -> None:
        """Count a run beyond its time until it ends.

        It counts in the threads that its agent has by now. These may be others, if the agent was gone meanwhile.
        """
        threads = THREADS[run.agent.name]
        threads.late[future] = Late(run, time.monotonic(), steps)
        future.add_done_callback(threads._forget)

    def _forget(self, future: RunFuture) -> None:
        del self.late[future]
        if not future.cancelled():
            future.exception()  # asyncio would log an exception that is never looked at. No caller waits for this one.


THREADS: defaultdict[str, Threads] = defaultdict(Threads)
"""The threads of each agent, by its name."""


def leave_agents() -> None:
    """Forget the threads of agents that are gone and have no late runs. They end by themselves, with the last run."""
    for name, threads in list(THREADS.items()):
        if registry.get(name) is None and not threads.late:
            del THREADS[name]


def is_late(run: Run) -> bool:
    """Return whether the run goes on beyond its time, or beyond its call."""
    return _late_future(run) is not None


def _late_future(run: Run) -> RunFuture | None:
    threads = THREADS.get(run.agent.name)
    late = list(threads.late.items()) if threads else []
    return next((future for future, one in late if one.run is run), None)


def when_over(run: Run, then: Callable[[], object]) -> None:
    """Call the function at once, or at the end of a late run. Then any thread may call it."""
    if (future := _late_future(run)) is None:
        then()
    else:
        future.add_done_callback(lambda _: then())


class Played(Struct, kw_only=True):
    """The result of a quick agent: the events after the task's creation, or a direct reply."""

    events: list[Event]
    reply: Message | None = None
    files: list[FileRow] = []
    failure: RunRow | None = None
    """The run of an agent that raised an error, with the traceback for operators."""
    size: int = 0
    """Characters of the events of the agent."""


async def play_quickly(run: Run, owner_id: int) -> Played:
    """Run the agent for a call of an owner and return its events. Raises Unavailable when there is no place for it."""
    scribe = Scribe(run.task_id, run.context_id, uuid7)
    since = clock.now()
    played = Played(events=[scribe.status(TaskState.WORKING, since)])
    events = played.events
    replies: list[Reply] = []

    async def accept(action: Action) -> None:
        if has_large(action.parts) and not run.cancelled:
            try:
                action, rows = await store_action(action, "", played.files)
            except WrongValue:
                raise
            except Exception as error:  # an operator chooses the storage, and it may raise anything
                raise FileRefused(str(error)) from error
            played.files += rows
        if run.cancelled:
            raise asyncio.CancelledError  # An action beyond the time is dropped, and its generator ends.
        if isinstance(action, Reply):
            replies.append(action)
        event = scribe.event(action, clock.now())
        size, together = encoded_size(event), merge(events[-1], event)
        played.size += added_size(event, size, together)
        check_growth(played.size, len(events) + 1 + (together is None))  # The task's creation is an event, too.
        events[-1:] = [together] if together else [events[-1], event]

    try:
        await _play_in_time(run, owner_id, accept)
    except NoPlace:
        log.warning("quick agent %s: all of its %d places are taken", run.agent.name, SLOTS)
        raise Unavailable(retry_after=RETRY_SECONDS) from None
    except Exception as error:  # an agent may raise anything; logged with its reference
        if not _is_end(events[-1]):
            judge_safely(error, lambda raised: _fail(played, run, scribe, since, raised))
            return played
        what = "went on for too long" if isinstance(error, OutOfTime) else "raised an error"
        log.warning("quick agent: task %s: its agent %s after its last action", run.task_id, what, exc_info=error)
    warn_of(run)
    _finish(played, replies, scribe)
    return played


def _fail(played: Played, run: Run, scribe: Scribe, since: datetime, error: Exception) -> None:
    if isinstance(error, OutOfTime):
        sentence = f"A quick agent has {LIMIT:g} seconds; define it without quick=True to give it more."
        fields = run_fields(run.task_id, run.agent.name, sentence)
        log.warning("quick agent %s: task %s took longer than %g s", run.agent.name, run.task_id, LIMIT, extra=fields)
        played.events.append(scribe.explain(TaskState.FAILED, clock.now(), sentence, Timeout.reason))
        return
    sentence, reference = explain(f"task {run.task_id} in the call", run.task_id, run.agent.name, error)
    event = scribe.explain(TaskState.FAILED, clock.now(), sentence, reason_of(error))
    played.failure = failed_row(run.task_id, 0, "in the call", since, reference, error)
    played.events.append(event)


def _finish(played: Played, replies: list[Reply], scribe: Scribe) -> None:
    """End the task, unless the agent did, or answer without a task."""
    if replies and len(played.events) == 2:
        # The reply is the only action, so the answer is a message, and there is no task (A2A 1.0, 3.1.1).
        played.reply = scribe.message(replies[0], bare=True)
    elif not _is_end(played.events[-1]):
        played.events.append(scribe.status(TaskState.COMPLETED, clock.now()))


async def _play_in_time(run: Run, owner_id: int, accept: Accept) -> None:
    """Play the agent within the limit. Raises its errors, OutOfTime and NoPlace."""
    threads = THREADS[run.agent.name]
    if len(threads.late) >= SLOTS:
        raise NoPlace
    if not run.agent.is_async:
        await threads.places.take(owner_id, LIMIT)

    def expire() -> None:
        run.cancelled = True

    steps = play(run, accept, threads, lambda thread: threads.leave(run, thread))
    driver = Driver(steps, LIMIT, GRACE)
    driver.on_expiry, driver.on_leave = expire, lambda task: threads.leave(run, task, steps)
    if not await driver:
        raise OutOfTime


def _is_end(event: Event) -> bool:
    status = status_of(event)
    return status is not None and status.state is not TaskState.WORKING


def warn_of(run: Run) -> str:
    """Log a sentence for each action that the agent made but did not yield; return the sentences, a line each."""
    warnings = run.drafts.warnings(run.agent.name)
    for sentence in warnings:
        log.warning("%s", sentence)
    return "\n".join(warnings)
