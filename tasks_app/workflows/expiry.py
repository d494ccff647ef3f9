"""The deletion of workflows that nothing has changed for long."""

from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from tasks_app.ids import uuid7_at
from tasks_app.models import PhaseTask, Workflow


def unused(before: datetime) -> QuerySet[Workflow]:
    """Return workflows that have not changed since a time, and that are not being executed."""
    return Workflow.objects.filter(id__lt=uuid7_at(before), updated_at__lt=before, runs_until__isnull=True)


def remove_unused(before: datetime, place: str, limit: int) -> list[str]:
    """Delete unused workflows with their tasks, from a place on and up to a limit; return their ids."""
    with transaction.atomic():
        rows = unused(before).filter(pk__gt=place).order_by("pk")
        ids = list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:limit])
        PhaseTask.objects.filter(workflow_id__in=ids)._raw_delete(using=connection.alias)
        Workflow.objects.filter(pk__in=ids)._raw_delete(using=connection.alias)
    return ids
