"""Tasks whose lease has expired: they are submitted again, or fail with the reason."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.rows import RunRow
from tasks_app.database.work import Do, DoApart
from tasks_app.event_log import change
from tasks_app.log_fields import run_fields
from tasks_app.models import Task
from tasks_app.runner.retries import Attempt, Verdict, judge_loss, judge_timeout
from tasks_app.runner.runner import runner
from tasks_app.upkeep.appending import append_alone
from tasks_app.upkeep.processes import clock_doubts

log = logging.getLogger(__name__)
BATCH = 200
"""Tasks that are read together."""
SLOW = 2.0
"""Seconds that the database may take to return the time; see `reclaim_tasks`."""
LATE = timedelta(seconds=5)
"""How long after its deadline a run may take to end by itself."""


def reclaim_tasks(renew: Callable[[], None] = lambda: None) -> int:
    """Submit again, or fail, the tasks whose lease has expired; return their number.

    Every task that this process works on has a lease that ends after `now`, even if the process was asleep or its clock
    was set forward: the time is read first, and the leases of this process are renewed after that.
    """
    began = time.monotonic()
    now = bridge.do(DoApart(clock.shared))
    if time.monotonic() - began > max(settings.A2A_LEASE_SECONDS / 3, SLOW):
        # While the database hung, other processes could not renew their leases either.
        log.warning("the database hung for %.0f s: the next sweep looks at leases", time.monotonic() - began)
        return 0
    if now - clock.now() > timedelta(seconds=settings.A2A_LEASE_SECONDS / 3):
        # It was set forward since the sweep began. See `Sweeper._is_calm`.
        log.warning("the database's clock was set: the next sweep looks at leases")
        return 0
    renew()
    # A worker that died may have had more tasks than a batch. None of them should wait for the next sweep.
    count = more = _reclaim_batch(now)
    while more >= BATCH:
        more = _reclaim_batch(now)
        count += more
    return count


def _reclaim_batch(now: datetime) -> int:
    # A deadline that was stored before the clock was set says nothing after that.
    judges_deadlines = not clock_doubts()
    tasks = bridge.do(Do(partial(_find_overdue, now, judges_deadlines=judges_deadlines)))
    return sum(_reclaim(task, now, judges_deadlines=judges_deadlines) for task in tasks)


def _reclaim(task: Task, now: datetime, *, judges_deadlines: bool = True) -> bool:
    """Submit a task again, or fail it. Return false if its row is locked or damaged, or its lease was renewed."""
    is_overdue = judges_deadlines and _is_overdue(task, now)
    verdict = _verdict(task, is_overdue=is_overdue)
    run = RunRow(
        task_id=task.id,
        fence=task.fence,
        worker=task.lease_owner or "",
        started_at=task.deadline and task.deadline - timedelta(seconds=task.timeout),
        ended_at=now,
        outcome=verdict.outcome,
    )
    item = change(
        task.id,
        task.context_id,
        [verdict.event],
        now=now,
        actor="sweeper",
        fence=task.fence,
        lease_before=None if is_overdue else now,
        run=run,
        delay=verdict.delay,
    )
    try:
        is_done = append_alone(item)
    except LockRefused:
        log.warning("task %s fence %d: %s, but its row is locked", task.id, task.fence, verdict.outcome)
        return False
    if is_done:
        fields = run_fields(task.id, task.agent, f"the run ended from outside: {verdict.outcome}")
        log.warning("task %s fence %d: %s", task.id, task.fence, verdict.outcome, extra=fields)
    return is_done


def _is_overdue(task: Task, now: datetime) -> bool:
    """Return whether the run went on beyond its deadline. One whose lease ended before that was lost in its time, and
    may be found much later, such as when a machine starts again after a night."""
    if task.deadline is None or task.lease_until is None:
        return False
    return task.deadline + LATE < now and task.deadline < task.lease_until


_COLUMNS = (
    "id",
    "context_id",
    "agent",
    "fence",
    "attempt",
    "max_attempts",
    "lease_owner",
    "lease_until",
    "deadline",
    "timeout",
)


def _find_overdue(now: datetime, *, judges_deadlines: bool = True) -> list[Task]:
    """Return working tasks whose lease or deadline ended before that time.

    The deadline is for runs that another process does not end. This process ends its own runs by its steady clock: if
    the machine was asleep or its clock was set forward, their deadlines have passed, but not their time.
    """
    working = Task.objects.filter(state=TaskState.WORKING.value).only(*_COLUMNS)
    late_leases = working.filter(lease_until__lt=now).order_by("lease_until")[:BATCH]
    late_runs = working.filter(lease_until__isnull=False, deadline__lt=now - LATE).exclude(lease_owner=runner.worker)
    late = [*late_leases, *(late_runs[:BATCH] if judges_deadlines else ())]
    return list({task.id: task for task in late}.values())


def _verdict(task: Task, *, is_overdue: bool) -> Verdict:
    attempt = Attempt(task.id, task.context_id, task.agent, task.attempt, task.max_attempts)
    return judge_timeout(attempt, task.timeout) if is_overdue else judge_loss(attempt)
