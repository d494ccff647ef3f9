"""Everything that is stored of who did what, in the order of time: entries, counts of refused calls, and acts.

The tables are read in pages and merged, so that an export of any length takes the same memory.
"""

from collections.abc import Iterator
from datetime import datetime
from heapq import merge
from typing import Any

import orjson
from django.db.models import QuerySet
from msgspec import Struct

from tasks_app.ids import uuid7_at
from tasks_app.models import Act, AuditEntry, Principal, Refusals, RefusedCalls, Tenant

PAGE = 1_000
"""Rows that are read at once from each table."""
ENTRY = (
    *("id", "created_at", "tenant", "caller", "caller_id", "credential", "peer", "door", "language", "method"),
    *("task_id", "webhook", "outcome", "code", "exchange_id", "trace"),
)
"""The columns of an entry that operators read."""
ACT = (
    *("id", "at", "operator", "door", "verb", "kind", "object_id", "name", "before", "after", "reason"),
    *("peer", "trace"),
)
"""The columns of an act that operators read."""
REFUSED = ("id", "hour", "tenant", "caller", "caller_id", "credential", "reason", "count", "last_at", "last_peer")
"""The columns of a count of refused calls that operators read."""


STRANGERS = ("id", "minute", "address", "unauthenticated", "limited", "invalid", "recorded")
"""The columns of a count of strangers' refused calls."""


class Window(Struct, frozen=True, kw_only=True):
    """The rows to export: from a time on, before a time, and of one caller alone; None for no limit."""

    since: datetime | None = None
    until: datetime | None = None
    caller: str | None = None
    """The name of a principal, or its tenant and its name with a slash between them. It has no acts."""


def export(window: Window) -> Iterator[dict[str, Any]]:
    """Yield the rows of the window, oldest first, each with its `kind`: entry, refused, strangers or act."""
    tables = [_entries(window), _refused(window)]
    if window.caller is None:
        tables += [_strangers(window), _acts(window)]
    for _, row in merge(*tables, key=lambda pair: pair[0]):
        yield row


def has_caller(window: Window) -> bool:
    """Return whether a principal has the name of the window's caller, if it names one."""
    columns = {"tenant": "tenant__name", "caller": "name"}
    names = {columns[column]: value for column, value in _of_caller(window.caller).items()}
    return not names or Principal.objects.filter(**names).exists()


Dated = Iterator[tuple[datetime, dict[str, Any]]]
"""Rows with their times, oldest first."""


def _entries(window: Window) -> Dated:
    rows = AuditEntry.objects.filter(**_of_caller(window.caller))
    if window.since:
        rows = rows.filter(id__gte=uuid7_at(window.since))
    if window.until:
        rows = rows.filter(id__lt=uuid7_at(window.until))
    for row in _in_pages(rows, ENTRY):
        yield row["created_at"], {"kind": "entry", **row}


def _refused(window: Window) -> Dated:
    rows = _between(RefusedCalls.objects.filter(**_of_caller(window.caller)), "hour", window)
    return _by_time(rows, "hour", REFUSED, "refused")


def _strangers(window: Window) -> Dated:
    return _by_time(_between(Refusals.objects.all(), "minute", window), "minute", STRANGERS, "strangers")


def _by_time(rows: "QuerySet[Any]", column: str, columns: tuple[str, ...], kind: str) -> Dated:
    """Yield rows whose ids do not follow their times.

    Many rows have one time. A page begins with the time of the last row, behind the rows of that time that were read.
    """
    last, place = None, 0
    while page := list(_from(rows, column, last).order_by(column, "id").values(*columns)[place : place + PAGE]):
        for row in page:
            yield row[column], {"kind": kind, **row}
            place = place + 1 if row[column] == last else 1
            last = row[column]


def _from(rows: "QuerySet[Any]", column: str, time: datetime | None) -> "QuerySet[Any]":
    return rows.filter(**{f"{column}__gte": time}) if time else rows


def _acts(window: Window) -> Dated:
    names = dict(Tenant.objects.values_list("pk", "name"))  # Nothing deletes a tenant.
    for row in _in_pages(_between(Act.objects.all(), "at", window), (*ACT, "tenant_id")):
        row["tenant"] = names.get(row.pop("tenant_id"))
        texts = {name: orjson.Fragment(row[name]) for name in ("before", "after")}
        row["object_kind"] = row.pop("kind")
        yield row["at"], {"kind": "act", **row, **texts}


def _in_pages(rows: "QuerySet[Any]", columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    last = None
    while page := list((rows.filter(id__gt=last) if last else rows).order_by("id").values(*columns)[:PAGE]):
        yield from page
        last = page[-1]["id"]


def _between(rows: "QuerySet[Any]", column: str, window: Window) -> "QuerySet[Any]":
    if window.since:
        rows = rows.filter(**{f"{column}__gte": window.since})
    return rows.filter(**{f"{column}__lt": window.until}) if window.until else rows


def _of_caller(caller: str | None) -> dict[str, str]:
    if caller is None:
        return {}
    tenant, slash, name = caller.partition("/")
    return {"tenant": tenant, "caller": name} if slash else {"caller": caller}
