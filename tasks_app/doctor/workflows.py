"""Findings about workflows whose execution does not go on, and about ends of their tasks that are not written."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from a2a.states import TERMINAL
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.work import LATE, MOST
from tasks_app.models import PhaseTask, Task, Workflow

_START = "Start a server. If one runs, its conductor does not work: see its log."


def examine_workflows(now: datetime) -> Iterator[Finding]:
    """Yield findings about workflows. `now` is the time by the database's clock."""
    for row in Workflow.objects.filter(due_at__lt=now - LATE).order_by("due_at")[:MOST]:
        yield Finding(
            kind="workflow",
            subject=row.pk,
            problem=f"The next task of workflow {row.pk} has been due since {row.due_at:%Y-%m-%d %H:%M:%S} UTC, and no "
            f"process has begun it.",
            remedy=_START,
        )
    open_tasks = PhaseTask.objects.filter(workflow_id=OuterRef("pk"), is_executed=True, ended_at__isnull=True)
    stuck = Workflow.objects.filter(runs_until__isnull=False, due_at=None, updated_at__lt=now - LATE)
    for row in stuck.exclude(Exists(open_tasks)).order_by("pk")[:MOST]:
        yield Finding(
            kind="workflow",
            subject=row.pk,
            problem=f"Workflow {row.pk} is being executed, but it waits for no task, and has no time for the next one.",
            remedy=f"Cancel it: manage.py a2a workflows cancel {row.pk}.",
        )
    yield from _find_unwritten_ends(now)


def _find_unwritten_ends(now: datetime) -> Iterator[Finding]:
    """Yield tasks of phases that have ended or are deleted, and whose ends are not written."""
    task = Task.objects.filter(pk=OuterRef("task_id"))
    ended = task.filter(state__in=[state.value for state in TERMINAL], status_at__lt=now - LATE)
    rows = PhaseTask.objects.filter(
        Q(Exists(ended)) | ~Q(Exists(task)), ended_at__isnull=True, created_at__lt=now - LATE
    )
    for row in rows.order_by("pk")[:MOST]:
        yield Finding(
            kind="workflow",
            subject=row.workflow_id,
            problem=f"Task {row.task_id} of workflow {row.workflow_id} has ended, and its end is not in the workflow.",
            remedy=_START,
        )
