"""Quick agents: run inside the call, before anything is stored; at most two seconds, repeatable, unseen until done."""

import asyncio
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor

from a2a.errors import Error
from a2a.events import Event, status_of
from a2a.run import Action, Reply, Run
from a2a.scribe import Scribe, merged
from a2a.states import TaskState
from a2a.types import Message
from tasks_app import clock
from tasks_app.ids import uuid7
from tasks_app.runner.play import play

log = logging.getLogger(__name__)
LIMIT = 2.0
"""Seconds."""
THREADS = ThreadPoolExecutor(32, thread_name_prefix="quick")
"""For sync ones; never a lane, which would hold up everybody."""


async def play_quickly(run: Run) -> list[Event] | Message:
    """The events after the task's creation, or the bare reply. Raises InvalidParams for inputs that do not fit."""
    scribe = Scribe(run.task_id, run.context_id, 1, uuid7)
    events: list[Event] = [scribe.status(TaskState.WORKING, clock.now())]
    replies: list[Reply] = []

    async def accept(action: Action) -> None:
        if isinstance(action, Reply):
            replies.append(action)
        event = scribe.event(action, clock.now())
        together = merged(events[-1], event)
        events[-1:] = [together] if together else [events[-1], event]

    try:
        async with asyncio.timeout(LIMIT) as limit:
            await play(run, accept, THREADS)
    except TimeoutError as error:
        if not limit.expired():
            return [*events, _failed(scribe, error)]
        sentence = f"A quick agent has {LIMIT:g} seconds; define it without quick=True to give it more."
        return [*events, scribe.said(TaskState.FAILED, clock.now(), sentence)]
    except Error:
        raise
    except Exception as error:  # noqa: BLE001  # an agent may raise anything; logged with its reference
        return [*events, _failed(scribe, error)]
    if replies and len(events) == 2:
        # Nothing but the reply was said: the answer is a message, and there is no task (A2A 1.0, 3.1.1).
        return scribe.message(replies[0].parts, bare=True)
    if not _ended(events[-1]):
        events.append(scribe.status(TaskState.COMPLETED, clock.now()))
    return events


def _ended(event: Event) -> bool:
    status = status_of(event)
    return status is not None and status.state is not TaskState.WORKING


def _failed(scribe: Scribe, error: Exception) -> Event:
    reference = secrets.token_hex(6)
    log.error("quick agent failed: task %s, reference %s", scribe.task_id, reference, exc_info=error)
    return scribe.said(TaskState.FAILED, clock.now(), failure_sentence(reference))


def failure_sentence(reference: str) -> str:
    """What callers are told of an agent that raised; the cause is for operators."""
    return f"The agent failed. Reference: {reference}"
