"""Tasks that have waited too long: for a worker that has their agent, or for an answer from their caller."""

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
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import DoApart
from tasks_app.event_log import Append, change
from tasks_app.ids import uuid7
from tasks_app.models import Task
from tasks_app.upkeep.appending import append_alone

log = logging.getLogger(__name__)
BATCH = 50
"""Tasks that one sweep ends for each of the two reasons."""


def expire() -> int:
    """End the tasks that have waited too long, with the reason; return their number."""
    now = bridge.do(DoApart(clock.shared))
    count = 0
    for item in bridge.do(DoApart(partial(_end_overdue, now))):
        try:
            is_over = append_alone(item)
        except LockRefused:
            continue  # The next sweep tries again.
        if is_over:
            count += 1
            log.warning("task %s: it has waited too long and is now %s", item.task_id, item.state)
    return count


def _end_overdue(now: datetime) -> list[Append]:
    """Return the appends that end the overdue tasks."""
    return [*_fail_without_claim(now), *_cancel_without_answer(now)]


def _fail_without_claim(now: datetime) -> Iterator[Append]:
    """Yield appends for tasks that no worker has claimed.

    The condition on `created_at` adds nothing to the one on `status_at`, but the index of runnable tasks has it.
    """
    hours = settings.A2A_QUEUE_HOURS
    before = now - timedelta(hours=hours)
    waiting = Task.objects.filter(
        Q(not_before=None) | Q(not_before__lt=before),
        state=TaskState.SUBMITTED.value,
        created_at__lt=before,
        status_at__lt=before,
    )
    for task in waiting.only("id", "context_id", "state", "agent", "queue")[:BATCH] if hours else ():
        sentence = (
            f"No worker has begun this task within {hours:g} hours. Its agent is {task.agent}, its queue {task.queue}: "
            f"either no running process has this agent and serves this queue, or all of them were busy."
        )
        yield _end(task, TaskState.FAILED, sentence, now)


def _cancel_without_answer(now: datetime) -> Iterator[Append]:
    """Yield appends for tasks whose agent asked a question and got no answer."""
    days = settings.A2A_ANSWER_DAYS
    states = [state.value for state in INTERRUPTED]
    rows = Task.objects.filter(state__in=states, status_at__lt=now - timedelta(days=days)).order_by("status_at")
    for task in rows.only("id", "context_id", "state")[:BATCH] if days else ():
        yield _end(task, TaskState.CANCELED, f"The agent asked, and no answer came within {days:g} days.", now)


def _end(task: Task, state: TaskState, sentence: str, now: datetime) -> Append:
    event = Scribe(task.id, task.context_id, uuid7).explain(state, now, sentence)
    item = change(task.id, task.context_id, [event], now=now, actor="sweeper")
    item.sources = [task.state]  # The append changes nothing if the task was claimed or answered meanwhile.
    return item
