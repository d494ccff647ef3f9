"""Tasks that have waited for too long: for a worker that has their agent, or for an answer of their caller."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Q

from a2a.scribe import Scribe
from a2a.states import INTERRUPTED, TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import Held
from tasks_app.database.work import DoApart
from tasks_app.event_log import Append, Appended, change
from tasks_app.ids import uuid7
from tasks_app.models import Task

log = logging.getLogger(__name__)
BATCH = 50
"""Tasks of each kind that one sweep ends."""


def expire() -> int:
    """End what has waited for too long, with the reason; return how many tasks that were."""
    now: datetime = bridge.do(DoApart(clock.shared))
    ended = 0
    for item in bridge.do(DoApart(partial(_overdue, now))):
        try:
            done = isinstance(bridge.do(item, patience=0), Appended)
        except Held:
            continue  # The next sweep comes.
        if done:
            ended += 1
            log.warning("task %s: it has waited for too long and is %s", item.task_id, item.state)
    return ended


def _overdue(now: datetime) -> list[Append]:
    return [*_unclaimed(now), *_unanswered(now)]


def _unclaimed(now: datetime) -> Iterator[Append]:
    """Tasks that no worker has taken; the time of their creation is in the index of what is runnable."""
    hours = settings.A2A_QUEUE_HOURS
    before = now - timedelta(hours=hours)
    waiting = Task.objects.filter(
        Q(not_before=None) | Q(not_before__lt=before),
        state=TaskState.SUBMITTED.value, created_at__lt=before, status_at__lt=before,
    )  # fmt: skip
    for task in waiting.only("id", "context_id", "state", "agent", "queue")[:BATCH] if hours else ():
        sentence = (
            f"No worker has begun this task within {hours:g} hours. Its agent is {task.agent}, its queue {task.queue}: "
            f"either no process that runs has this agent and takes from this queue, or all of them had other work."
        )
        yield _end(task, TaskState.FAILED, sentence, now)


def _unanswered(now: datetime) -> Iterator[Append]:
    days = settings.A2A_ANSWER_DAYS
    states = [state.value for state in INTERRUPTED]
    asked = Task.objects.filter(state__in=states, status_at__lt=now - timedelta(days=days)).order_by("status_at")
    for task in asked.only("id", "context_id", "state")[:BATCH] if days else ():
        yield _end(task, TaskState.CANCELED, f"The agent asked, and no answer came within {days:g} days.", now)


def _end(task: Task, state: TaskState, sentence: str, now: datetime) -> Append:
    event = Scribe(task.id, task.context_id, 1, uuid7).said(state, now, sentence)
    item = change(task.id, task.context_id, [event], now=now, actor="sweeper")
    item.sources = [task.state]  # Not if it was claimed or answered meanwhile.
    return item
