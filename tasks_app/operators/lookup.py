"""Searches by any id that an operator may hold. They compare exact ids on indexes only, because the tables are long."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import CharField, Model, Q, QuerySet

from a2a.states import TaskState
from tasks_app.ids import uuid7_at
from tasks_app.models import AuditEntry, Delivery, Exchange, Principal, Run, Task
from tasks_app.models.states import DeliveryState

M = TypeVar("M", bound=Model)

ID_LENGTH = 36
"""Characters of an id that begins with its time."""
CANDIDATES = 500
"""Newest rows that a search considers for each kind of id. An rpc id such as 1 occurs in very many exchanges."""

NONE = "none"
"""The name of an empty outcome, of calls without a recorded answer, or dialect, of those that were refused unread."""

UNINDEXED_VALUES: dict[tuple[type[Model], str], str] = {
    (Task, "state"): TaskState.COMPLETED.value,
    (Exchange, "outcome"): "result",
    (Delivery, "state"): DeliveryState.DELIVERED,
}
"""The value that each partial index leaves out, because most rows have it."""


def filter_by(rows: QuerySet[M], **values: Any) -> QuerySet[M]:
    """Return the rows with these column values, in a form that lets the database use its partial indexes.

    SQLite uses a partial index only for a statement that repeats the condition of the index.
    """
    for column, value in values.items():
        unindexed = UNINDEXED_VALUES.get((rows.model, column))
        if unindexed is not None and value != unindexed:
            rows = rows.exclude(**{column: unindexed})
    return rows.filter(**values)


def read_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a search for exchanges, with the texts of the columns in place of NONE."""
    return {**values, **{name: "" for name in ("outcome", "dialect") if values.get(name) == NONE}}


def in_window(rows: QuerySet[M], column: str, since: datetime | None, until: datetime | None) -> QuerySet[M]:
    """Return the rows whose time in the column is not before `since`, and before `until`.

    Ids that begin with the time are compared in its place: the tables that have them are long, and no other index has
    their times.
    """
    key = rows.model._meta.pk
    by_id = key is not None and isinstance(key, CharField) and key.max_length == ID_LENGTH
    for name, time in (("gte", since), ("lt", until)):
        if time is not None:
            rows = rows.filter(**{f"pk__{name}": uuid7_at(time)} if by_id else {f"{column}__{name}": time})
    return rows


def owned_by(rows: QuerySet[M], text: str, column: str = "owner_id") -> QuerySet[M]:
    """Return the rows of the principals of a name, which may have the tenant before it, as in acme/olga.

    `column` has the id of the principal.
    """
    if "\0" in text:
        return rows.none()
    tenant, _, name = text.partition("/")
    named = Principal.objects.filter(Q(name=text) | Q(tenant__name=tenant, name=name))
    return rows.filter(**{f"{column}__in": list(named.values_list("pk", flat=True))})


def find_exchanges(text: str, among: QuerySet[Exchange] | None = None, most: int = CANDIDATES) -> QuerySet[Exchange]:
    """Find the newest exchanges by exchange, request, rpc or task id, or by the reference of a task's failure."""
    rows = Exchange.objects.all() if among is None else among
    keys = _parse_keys(text)
    ids: set[str] = set()
    if keys:
        columns = {"id": keys, "request_id": keys, "rpc_id": keys, "task_id": [*keys, *find_failures(text, most)]}
        for column, values in columns.items():
            # One query for each index: for an OR over four indexes, databases tend to read the whole table.
            # The index on request ids leaves out empty ones, so the statement must exclude them too.
            indexed = rows.exclude(request_id="") if column == "request_id" else rows
            hits = indexed.filter(**{f"{column}__in": values}).order_by("-id").values_list("id", flat=True)
            ids.update(hits[:most])
    return rows.filter(id__in=sorted(ids, reverse=True)[:most]).order_by("-id")


def find_entries(text: str, among: QuerySet[AuditEntry], most: int = CANDIDATES) -> QuerySet[AuditEntry]:
    """Find the newest entries of the audit by task or exchange id, address, principal or credential."""
    text = text.strip()
    if "\0" in text:
        return among.none()
    ids: set[str] = set()
    # One query for each index, as in find_exchanges. An entry written with a change has the id of its exchange.
    for column in ("id", "task_id", "peer", "credential"):
        ids.update(among.filter(**{column: text}).order_by("-id").values_list("id", flat=True)[:most])
    tenant, _, name = text.partition("/")
    principals = list(Principal.objects.filter(tenant__name=tenant, name=name).values_list("pk", flat=True))
    ids.update(among.filter(caller_id__in=principals).order_by("-id").values_list("id", flat=True)[:most])
    return among.filter(id__in=sorted(ids, reverse=True)[:most]).order_by("-id")


def find_tasks(text: str, among: QuerySet[Task] | None = None, most: int = CANDIDATES) -> QuerySet[Task]:
    """Find tasks by task id, by context id (the newest), or by the reference of a failure."""
    rows = Task.objects.all() if among is None else among
    keys = _parse_keys(text)
    if not keys:
        return rows.none()
    # The index on contexts begins with the owner. Naming all owners makes it usable.
    in_context = Q(owner_id__in=Principal.objects.values("id"), context_id__in=keys)
    hits = rows.filter(in_context).order_by("-id").values_list("id", flat=True)[:most]
    return rows.filter(id__in={*keys, *hits, *find_failures(text, most)}).order_by("-id")


def find_tasks_by_reference(reference: str) -> QuerySet[Task]:
    """Find the tasks whose failure has this reference."""
    return Task.objects.filter(pk__in=find_failures(reference))


def read_states(task_ids: Iterable[str | None], among: QuerySet[Task] | None = None) -> dict[str, str]:
    """Return the present state of each task that still exists, and is among those if they are given."""
    ids = {task_id for task_id in task_ids if task_id}
    rows = Task.objects.all() if among is None else among
    return dict(rows.filter(pk__in=ids).values_list("pk", "state")) if ids else {}


def find_failures(text: str, most: int = CANDIDATES) -> list[str]:
    """Return the ids of tasks with a failed run of this reference. The error message to the caller contained it."""
    keys = [key.removeprefix("Reference:").strip().removesuffix(".") for key in _parse_keys(text)]
    # The index leaves out empty references, so on SQLite the statement must exclude them too.
    runs = Run.objects.exclude(reference="").filter(reference__in=keys)
    return list(dict.fromkeys(runs.order_by("-id").values_list("task_id", flat=True)[:most]))


def _parse_keys(text: str) -> list[str]:
    """Return the pasted text without surrounding white space and quotes, and also with the quotes if it has any."""
    whole = text.strip()
    # No row contains U+0000 or half a surrogate pair, and PostgreSQL refuses to search for them.
    if not whole or "\0" in whole or whole != whole.encode(errors="replace").decode():
        return []
    bare = whole.strip("\"'`").strip()
    return [whole] if bare in {"", whole} else [bare, whole]
