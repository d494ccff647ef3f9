"""Leases on executions of workflows: a process takes those whose next task is due, and puts off or releases them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from tasks_app import clock
from tasks_app.models import PhaseTask, Workflow
from tasks_app.workflows.log import rows_to_lock

TOGETHER = 1_000
"""Executions of an owner that are put off together."""


def take_due(most: int) -> list[Workflow]:
    """Take executions whose next task is due, for as long as a lease lasts. A row that another transaction has locked
    is left for later."""
    now = clock.shared()
    with transaction.atomic():
        rows = Workflow.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.filter(due_at__lte=now).order_by("due_at").select_related("owner__tenant")
        return [row for row in rows[:most] if _take(row, now)]


def _take(row: Workflow, now: datetime) -> bool:
    before, row.due_at = row.due_at, now + timedelta(seconds=settings.A2A_LEASE_SECONDS)
    return bool(Workflow.objects.filter(pk=row.pk, due_at=before).update(due_at=row.due_at))


def tries_of(row: Workflow) -> int | None:
    """Return how many tasks of its phase executions have seen the end of; None if its step is not this process's any
    more, because it came so late that another process may have taken the step, or the execution was stopped."""
    rows = PhaseTask.objects.filter(workflow_id=row.pk, phase=row.phase, is_executed=True)
    count = rows.filter(ended_at__isnull=False).count()
    # The look at the lease comes last. While it is this process's, no other has ended a task of the phase.
    return count if Workflow.objects.filter(pk=row.pk, due_at=row.due_at).exists() else None


def put_off(workflow_id: str, seconds: float) -> None:
    """Have the next task of an execution wait for that time."""
    due_at = clock.shared() + timedelta(seconds=seconds)
    with transaction.atomic():
        row = rows_to_lock().filter(pk=workflow_id, due_at__isnull=False).first()
        if row is not None:
            row.due_at = due_at
            row.save(update_fields=["due_at"])


def put_off_owner(owner_id: int, seconds: float, steps: Sequence[Workflow] = ()) -> None:
    """Have the next tasks of all executions of an owner wait for that time.

    `steps` are executions that this process has taken and not begun. They wait for no longer, although their leases
    may end later. Any other row that is due later keeps its time, because a process may be at work on it, and so does a
    row that another transaction has locked.
    """
    due_at = clock.shared() + timedelta(seconds=seconds)
    own = {row.pk: row.due_at for row in steps}
    with transaction.atomic():
        rows = Workflow.objects.select_for_update(skip_locked=True, no_key=True)
        rows = rows.filter(Q(due_at__lt=due_at) | Q(pk__in=own), owner_id=owner_id, due_at__isnull=False)
        times = rows.order_by("due_at").values_list("pk", "due_at")[:TOGETHER]
        ids = [pk for pk, time in times if time and (time < due_at or time == own.get(pk))]
        Workflow.objects.filter(pk__in=ids).update(due_at=due_at)


def release(steps: Sequence[Workflow]) -> None:
    """Let any process take steps now that this process has taken, and not begun."""
    for row in steps:
        Workflow.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=clock.shared())


def release_all() -> None:
    """Make every execution that a process of before had taken due now. Call it at the start of the only process of an
    installation."""
    Workflow.objects.filter(due_at__isnull=False).update(due_at=clock.shared())
