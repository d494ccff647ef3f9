"""Tasks that have waited too long: for a worker that has their agent, or for an answer from their caller."""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Generic, TypeVar

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a.scribe import Scribe
from a2a.states import INTERRUPTED, TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import DoApart
from tasks_app.event_log import Append, change
from tasks_app.ids import uuid7
from tasks_app.models import Principal, SharedStream, Task
from tasks_app.upkeep.appending import append_alone

log = logging.getLogger(__name__)
Row = TypeVar("Row", bound=Task | SharedStream)
BATCH = 50
"""Rows that one sweep ends for each reason."""
OWNERS = 1_000
"""Owners that one sweep looks at, while more rows than BATCH are overdue."""


class Turns(Generic[Row]):
    """The turns of owners whose rows are ended for one reason: those of one owner do not delay those of another."""

    def __init__(self, order: str = "status_at") -> None:
        self.order = order
        """The column by which the oldest rows come first."""
        self.place = 0
        """The id of the last owner that was looked at."""

    def take(self, rows: QuerySet[Row], states: Sequence[str]) -> list[Row]:
        """Return BATCH rows in these states at most: all if there are no more, else an equal share for each of the
        next owners who have any, and then others."""
        first = list(rows.filter(state__in=states)[:BATCH])
        if len(first) < BATCH:
            return first
        late = self._find_owners(rows, states)
        shares = [row for owner in late for row in self._oldest(rows.filter(owner=owner), states, BATCH // len(late))]
        return list({row.id: row for row in (*shares, *first)}.values())[:BATCH]

    def _find_owners(self, rows: QuerySet[Row], states: Sequence[str]) -> list[int]:
        """Return the next owners with such rows, BATCH at most, of the next OWNERS."""
        theirs = rows.order_by().filter(owner=OuterRef("pk"))
        is_late = reduce(or_, (Exists(theirs.filter(state=state)) for state in states))
        owners = Principal.objects.filter(pk__gt=self.place).order_by("pk").annotate(is_late=is_late)
        page = list(owners.values_list("pk", "is_late")[:OWNERS])
        late = [owner for owner, is_late in page if is_late]
        if len(late) > BATCH:
            self.place = late[BATCH - 1]
        else:
            self.place = page[-1][0] if len(page) == OWNERS else 0
        return late[:BATCH]

    def _oldest(self, rows: QuerySet[Row], states: Sequence[str], most: int) -> list[Row]:
        """Return rows of one owner, each state by itself: so the index of tasks by owner and state has them in
        order."""
        return [row for state in states for row in rows.filter(state=state).order_by(self.order)[:most]][:most]


turns_of_workers, turns_of_answers = Turns[Task](), Turns[Task]()
"""The turns for tasks that no worker has claimed, and for those without an answer."""


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
        created_at__lt=before,
        status_at__lt=before,
    )
    waiting = waiting.only("id", "context_id", "state", "agent", "queue")
    for task in turns_of_workers.take(waiting, [TaskState.SUBMITTED.value]) if hours else ():
        sentence = (
            f"No worker has begun this task within {hours:g} hours. Its agent is {task.agent}, its queue {task.queue}: "
            f"either no running process has this agent and serves this queue, or all of them were busy."
        )
        yield _end(task, TaskState.FAILED, sentence, now)


def _cancel_without_answer(now: datetime) -> Iterator[Append]:
    """Yield appends for tasks whose agent asked a question and got no answer."""
    days = settings.A2A_ANSWER_DAYS
    rows = Task.objects.filter(status_at__lt=now - timedelta(days=days)).order_by("status_at")
    rows = rows.only("id", "context_id", "state")
    for task in turns_of_answers.take(rows, [state.value for state in INTERRUPTED]) if days else ():
        yield _end(task, TaskState.CANCELED, f"The agent asked, and no answer came within {days:g} days.", now)


def _end(task: Task, state: TaskState, sentence: str, now: datetime) -> Append:
    event = Scribe(task.id, task.context_id, uuid7).explain(state, now, sentence)
    item = change(task.id, task.context_id, [event], now=now, actor="sweeper")
    item.sources = [task.state]  # The append changes nothing if the task was claimed or answered meanwhile.
    return item
