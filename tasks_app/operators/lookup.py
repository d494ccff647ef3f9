"""Find rows by whatever id somebody has at hand. Exact ids on indexes only: these tables are long."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from a2a.states import TaskState
from tasks_app.models import Delivery, Exchange, Principal, Run, Task

M = TypeVar("M", bound=Model)

CANDIDATES = 500
"""The newest of each kind that are looked at: an rpc id such as 1 is used by everybody, all the time."""


NOT_INDEXED: dict[tuple[type[Model], str], str] = {
    (Task, "state"): TaskState.COMPLETED.value,
    (Exchange, "outcome"): "result",
    (Delivery, "state"): "delivered",
}
"""The one value of a column that its partial index leaves out, for most rows have it."""


def having(rows: QuerySet[M], **values: Any) -> QuerySet[M]:
    """Return the rows with these values of columns, so that partial indexes are used.

    SQLite uses such an index only where the statement repeats its condition.
    """
    for column, value in values.items():
        left_out = NOT_INDEXED.get((rows.model, column))
        if left_out is not None and value != left_out:
            rows = rows.exclude(**{column: left_out})
    return rows.filter(**values)


def exchanges(text: str, among: QuerySet[Exchange] | None = None, most: int = CANDIDATES) -> QuerySet[Exchange]:
    """Return the newest exchanges with that exchange, request, rpc or task id, or about the task whose failure has
    that reference."""
    rows = Exchange.objects.all() if among is None else among
    keys = _keys(text)
    found: set[str] = set()
    if keys:
        wanted = {"id": keys, "request_id": keys, "rpc_id": keys, "task_id": [*keys, *failures(text, most)]}
        for field, values in wanted.items():
            # One indexed query each: with an OR over four indexes, databases like to read the whole table.
            # Empty request ids are not in their index, and a database must be told that they are not looked for.
            named = rows.exclude(request_id="") if field == "request_id" else rows
            hits = named.filter(**{f"{field}__in": values}).order_by("-id").values_list("id", flat=True)
            found.update(hits[:most])
    return rows.filter(id__in=sorted(found, reverse=True)[:most]).order_by("-id")


def tasks(text: str, among: QuerySet[Task] | None = None, most: int = CANDIDATES) -> QuerySet[Task]:
    """Return the task of that id, the newest tasks of that context, and the task whose failure has that reference."""
    rows = Task.objects.all() if among is None else among
    keys = _keys(text)
    if not keys:
        return rows.none()
    # The index on contexts begins with the owner: naming all owners makes it usable.
    in_context = Q(owner_id__in=Principal.objects.values("id"), context_id__in=keys)
    hits = rows.filter(in_context).order_by("-id").values_list("id", flat=True)[:most]
    return rows.filter(id__in={*keys, *hits, *failures(text, most)}).order_by("-id")


def tasks_of_failure(reference: str) -> QuerySet[Task]:
    """Return the tasks whose failure has that reference."""
    return Task.objects.filter(pk__in=failures(reference))


def states(task_ids: Iterable[str | None]) -> dict[str, str]:
    """Return the states in which these tasks are now, as far as they are still kept."""
    wanted = {task_id for task_id in task_ids if task_id}
    return dict(Task.objects.filter(pk__in=wanted).values_list("pk", "state")) if wanted else {}


def failures(text: str, most: int = CANDIDATES) -> list[str]:
    """Return the tasks of the runs that failed with this reference, which their callers were told."""
    keys = [key.removeprefix("Reference:").strip().removesuffix(".") for key in _keys(text)]
    # Empty references are not in their index: SQLite must be told that they are not looked for.
    named = Run.objects.exclude(reference="").filter(reference__in=keys)
    return list(dict.fromkeys(named.order_by("-id").values_list("task_id", flat=True)[:most]))


def _keys(text: str) -> list[str]:
    """What was pasted: without the white space and the quotes around it, and with the quotes if it has any."""
    whole = text.strip()
    # No row holds U+0000 or half a character, and PostgreSQL refuses to look for them.
    if not whole or "\0" in whole or whole != whole.encode(errors="replace").decode():
        return []
    bare = whole.strip("\"'`").strip()
    return [whole] if bare in {"", whole} else [bare, whole]
