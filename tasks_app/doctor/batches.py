"""Findings about batches that no process goes on with, and about open tasks of batches that are over."""

from collections.abc import Iterator
from datetime import datetime

from a2a.states import TaskState
from tasks_app.batches.rows import BATCH_AGENT
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.work import LATE, MOST
from tasks_app.models import Batch, Task


def examine_batches(now: datetime) -> Iterator[Finding]:
    """Yield findings about batches. `now` is the time by the database's clock."""
    for row in Batch.objects.filter(due_at__lt=now - LATE).order_by("due_at")[:MOST]:
        yield Finding(
            kind="batch",
            subject=row.pk,
            problem=f"Batch {row.pk} has been due since {row.due_at:%Y-%m-%d %H:%M:%S} UTC, and no process goes on "
            f"with it.",
            remedy="Start a server. If one runs, its keeper does not work: see its log.",
        )
    over = Task.objects.filter(agent=BATCH_AGENT, state=TaskState.WORKING.value, status_at__lt=now - LATE)
    over = over.exclude(pk__in=Batch.objects.filter(due_at__isnull=False).values("pk"))
    for task_id in over.order_by("pk").values_list("pk", flat=True)[:MOST]:
        yield Finding(
            kind="batch",
            subject=task_id,
            problem=f"Batch {task_id} is over, but its task has not ended.",
            remedy=f"Cancel it: manage.py tasks cancel {task_id}.",
        )
