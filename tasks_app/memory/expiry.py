"""The removal of expired entries, which no read has seen since their time."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from tasks_app.memory.entries import remove
from tasks_app.models import MemoryEntry


def overdue(before: datetime) -> QuerySet[MemoryEntry]:
    """Return the entries that have expired before a time."""
    return MemoryEntry.objects.filter(expires_at__lt=before)


def remove_overdue(before: datetime, limit: int) -> int:
    """Delete entries that have expired before a time, the oldest first, up to a number; return how many.

    An entry that was written again since is no longer among them: the rooms of the owners are locked before the delete.
    """
    with transaction.atomic():
        rows = overdue(before).order_by("expires_at", "pk").values_list("pk", flat=True)[:limit]
        return remove(rows, before)
