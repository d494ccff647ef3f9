"""Leases that ended: their tasks are taken up again, or fail with the reason."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import Held
from tasks_app.database.rows import RunRow
from tasks_app.database.work import Do, DoApart
from tasks_app.event_log import change
from tasks_app.models import Task
from tasks_app.runner.retries import Attempt, Verdict, lost, overtime

log = logging.getLogger(__name__)
BATCH = 200
"""Tasks that are judged together."""
SLOW = 2.0
"""Seconds that the database may take to say what time it is."""
LATE = timedelta(seconds=5)
"""After its deadline a run has this long to end by itself."""


def take_up(renew: Callable[[], None] = lambda: None) -> int:
    """Submits again, or fails, what nobody has a lease on any more; how many tasks that were.

    The time is read first, then this process renews what it holds: however long it was asleep, or its clock is set
    forward, and at whatever moment, what it works on has a lease that ends after that time.
    """
    began = time.monotonic()
    now: datetime = bridge.do(DoApart(clock.shared))
    if time.monotonic() - began > max(settings.A2A_LEASE_SECONDS / 3, SLOW):
        log.warning("the database hung for %.0f s: leases are judged by the next sweep", time.monotonic() - began)
        return 0  # Others could not renew theirs meanwhile.
    renew()
    # A worker may lose more than a batch, and none of it should wait for the next sweep.
    done = more = _take_up_some(now)
    while more >= BATCH:
        more = _take_up_some(now)
        done += more
    return done


def _take_up_some(now: datetime) -> int:
    expired: list[Task] = bridge.do(Do(partial(_expired, now)))
    return sum(_taken_up(task, now) for task in expired)


def _taken_up(task: Task, now: datetime) -> bool:
    """Judge a task; false where its row is held, or the task is none of ours any more."""
    is_overdue = task.deadline is not None and task.deadline + LATE < now
    verdict = _verdict(task, is_overdue=is_overdue)
    item = change(
        task.id, task.context_id, [verdict.event], now=now, actor="sweeper", attempt=task.attempt,
        lease_before=None if is_overdue else now,
        run=RunRow(
            task_id=task.id, number=task.attempt, worker=task.lease_owner or "",
            started_at=task.deadline and task.deadline - timedelta(seconds=task.timeout), ended_at=now,
            outcome=verdict.outcome,
        ),
        delay=verdict.delay,
    )  # fmt: skip
    try:
        # The next sweep comes; the others that are lost do not wait for this one.
        done = bridge.do(item, patience=0) is not None
    except Held:
        log.warning("task %s attempt %d: %s, but somebody holds its row", task.id, task.attempt, verdict.outcome)
        return False
    if done:
        log.warning("task %s attempt %d: %s", task.id, task.attempt, verdict.outcome)
    return done


def _expired(now: datetime) -> list[Task]:
    """The working tasks whose lease or deadline is before that time."""
    working = Task.objects.filter(state=TaskState.WORKING.value).only(
        "id", "context_id", "agent", "attempt", "tries", "max_attempts", "lease_owner", "lease_until", "deadline",
        "timeout",
    )  # fmt: skip
    expired = working.filter(lease_until__lt=now).order_by("lease_until")[:BATCH]
    overdue = working.filter(lease_until__isnull=False, deadline__lt=now - LATE)[:BATCH]
    return list({task.id: task for task in [*expired, *overdue]}.values())


def _verdict(task: Task, *, is_overdue: bool) -> Verdict:
    attempt = Attempt(task.id, task.context_id, task.agent, task.tries, task.max_attempts)
    return overtime(attempt, task.timeout) if is_overdue else lost(attempt)
