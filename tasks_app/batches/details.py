"""Batches as operators read them: with the state of their task, and a page of their items."""

from typing import Any

import orjson
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery

from a2a.states import TaskState
from tasks_app.database.keyset import fetch_page
from tasks_app.models import Batch, BatchItem, Task
from tasks_app.operators import columns

LIMIT, MOST = 50, 500
"""Items of a page by default, and at most."""
STATES = (TaskState.WORKING, TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED)
"""The states of the task of a batch."""


def with_states(rows: QuerySet[Batch]) -> QuerySet[Batch]:
    """Add the state of the task of each batch to the rows, null where the task is gone."""
    return rows.annotate(state=Subquery(Task.objects.filter(pk=OuterRef("pk")).values("state")[:1]))


def in_state(rows: QuerySet[Batch], state: str) -> QuerySet[Batch]:
    """Return the batches in a state."""
    # A batch whose task is at work is due some time, and an index has all that are.
    rows = rows.filter(due_at__isnull=False) if state == TaskState.WORKING else rows
    return rows.filter(Exists(Task.objects.filter(pk=OuterRef("pk"), state=state)))


def details_of(row: Batch, after: int = 0, limit: int = LIMIT) -> dict[str, Any]:
    """Return the numbers of items by state, and a page of items behind so many.

    `after` of the result leads to the next ones.
    """
    items, rest = page_of(row.pk, after, limit)
    return {
        "counts": counts_of(row.pk),
        "items": [
            {name: getattr(item, name) for name in columns.BATCH_ITEM} | {"error": error_of(item)} for item in items
        ],
        "after": rest,
    }


def page_of(batch_id: str, after: int, limit: int) -> tuple[list[BatchItem], int | None]:
    """Return up to `limit` items from a place on in their order, and the place of the next ones, if there are any."""
    rows = BatchItem.objects.filter(batch_id=batch_id, place__gte=after).order_by("place").defer("message")
    items, more = fetch_page(rows, limit)
    return items, items[-1].place + 1 if more else None


def counts_of(batch_id: str) -> dict[str, int]:
    """Return the numbers of items by how they have ended, `open` for those that have not."""
    rows = BatchItem.objects.filter(batch_id=batch_id).values_list("state").annotate(number=Count("place"))
    return {state or "open": number for state, number in rows.order_by("state")}


def error_of(item: BatchItem) -> dict[str, Any] | None:
    """Return the reason and the message for which an item became no task, if it became none."""
    try:
        return dict(orjson.loads(item.error)) if item.error else None
    except (ValueError, TypeError):  # a damaged text
        return {"message": item.error}
