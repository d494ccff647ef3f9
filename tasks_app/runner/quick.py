"""Quick agents: run inside the call, before anything is stored; at most two seconds, repeatable, unseen until done."""

import asyncio
import logging
import secrets
import traceback
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime

from msgspec import Struct

from a2a.dialects.json.json_1_0 import check_encodable
from a2a.errors import Unavailable
from a2a.events import Event, status_of
from a2a.mistakes import AgentMistake
from a2a.run import Action, Failure, Reply, Run
from a2a.scribe import Scribe, merge
from a2a.states import TaskState
from a2a.types import Message
from tasks_app import clock
from tasks_app.database.rows import FileRow, RunRow
from tasks_app.files import has_large, store_action
from tasks_app.ids import uuid7
from tasks_app.runner.isolation import ProcessCrashed
from tasks_app.runner.play import Accept, play

log = logging.getLogger(__name__)
LIMIT = 2.0
"""Seconds."""
RETRY_SECONDS = 2
SLOTS = 32
"""Threads of a sync one; never a lane, which would hold up everybody."""


class OutOfTime(Exception):
    """The agent took longer than it may."""


class NoThread(Exception):
    """All threads of the agent are taken by other calls, or by work whose time is over."""


class Threads(ThreadPoolExecutor):
    """The threads of one sync agent: an agent that hangs takes none of another's."""

    def __init__(self) -> None:
        super().__init__(SLOTS, thread_name_prefix="quick")
        self.late: set[Future[None]] = set()
        """Work whose time is over. It cannot be stopped, and keeps its thread until it ends."""

    def leave(self, work: Future[None]) -> bool:
        """Nobody waits for it any more; False if it had not begun, and never will."""
        if work.cancel():
            return False
        self.late.add(work)
        work.add_done_callback(self.late.discard)
        return True


THREADS: defaultdict[str, Threads] = defaultdict(Threads)
"""By the agent's name."""


class Played(Struct, kw_only=True):
    """The result of a quick agent: the events after the task's creation, or a direct reply."""

    events: list[Event]
    reply: Message | None = None
    files: list[FileRow] = []
    failure: RunRow | None = None
    """For operators: the run of an agent that raised, with its traceback."""


async def play_quickly(run: Run) -> Played:
    """Lets the agent act, and collects what it says. Raises Unavailable when there is no thread for it."""
    scribe = Scribe(run.task_id, run.context_id, uuid7)
    started = clock.now()
    played = Played(events=[scribe.status(TaskState.WORKING, started)])
    events = played.events
    replies: list[Reply] = []
    limit = asyncio.timeout(LIMIT)

    async def accept(action: Action) -> None:
        if has_large(action.parts):
            action, rows = await store_action(action, "", played.files)
            played.files += rows
        if limit.expired():
            return  # A thread that says more than anybody waited for.
        if isinstance(action, Reply):
            replies.append(action)
        event = scribe.event(action, clock.now())
        check_encodable(event)
        together = merge(events[-1], event)
        events[-1:] = [together] if together else [events[-1], event]

    try:
        await _play_in_time(run, accept, limit)
    except NoThread:
        log.warning("quick agent %s: all of its %d threads are taken", run.agent.name, SLOTS)
        raise Unavailable(retry_after=RETRY_SECONDS) from None
    except OutOfTime:
        sentence = f"A quick agent has {LIMIT:g} seconds; define it without quick=True to give it more."
        events.append(scribe.explain(TaskState.FAILED, clock.now(), sentence))
        return played
    except Exception as error:  # noqa: BLE001  # an agent may raise anything; logged with its reference
        sentence, reference = explain(f"quick agent: task {run.task_id}", error)
        events.append(scribe.explain(TaskState.FAILED, clock.now(), sentence))
        played.failure = failed_row(run.task_id, 0, "in the call", started, reference, error)
        return played
    warn_of(run)
    if replies and len(events) == 2:
        # Nothing but the reply was said: the answer is a message, and there is no task (A2A 1.0, 3.1.1).
        played.reply = scribe.message(replies[0], bare=True)
    elif not _ended(events[-1]):
        events.append(scribe.status(TaskState.COMPLETED, clock.now()))
    return played


async def _play_in_time(run: Run, accept: Accept, limit: asyncio.Timeout) -> None:
    """Raises what the agent raises, OutOfTime and NoThread."""
    threads, begun = THREADS[run.agent.name], True
    if len(threads.late) >= SLOTS:
        raise NoThread

    def leave(work: Future[None]) -> None:
        nonlocal begun
        begun = threads.leave(work)

    try:
        async with limit:
            await play(run, accept, threads, leave)
    except TimeoutError:
        if limit.expired():
            raise (OutOfTime if begun else NoThread) from None
        raise


def _ended(event: Event) -> bool:
    status = status_of(event)
    return status is not None and status.state is not TaskState.WORKING


def warn_of(run: Run) -> str:
    """Log a sentence for each action that the agent of a run made and never gave; return them, a line each."""
    forgotten = run.drafts.warnings(run.agent.name)
    for sentence in forgotten:
        log.warning("%s", sentence)
    return "\n".join(forgotten)


def failed_row(task_id: str, fence: int, worker: str, started: datetime, reference: str, error: Exception) -> RunRow:
    """The run of an agent that raised; the only place where its traceback is kept."""
    lines = [str(error)] if isinstance(error, AgentMistake) else traceback.format_exception(error)
    trace = "".join(lines).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return RunRow(
        task_id=task_id, fence=fence, worker=worker, started_at=started, ended_at=clock.now(), outcome="failed",
        reference=reference, traceback=trace.encode("utf-8", "replace").decode(),
    )  # fmt: skip


def explain(who: str, error: Exception) -> tuple[str, str]:
    """Return the text for callers of an agent that raised, and the reference to the log where the text is no more."""
    if isinstance(error, Failure):
        log.warning("%s failed in its own words", who)
        return error.text, ""
    reference = secrets.token_hex(6)
    if isinstance(error, AgentMistake):
        log.error("%s failed, reference %s: %s", who, reference, error)
    else:
        log.error("%s failed, reference %s", who, reference, exc_info=error)
    what = "The agent's process crashed." if isinstance(error, ProcessCrashed) else "The agent failed."
    return f"{what} Reference: {reference}", reference
