"""Filters of the admin's lists. Each uses an index, or searches only a window of the newest rows (see paging.py)."""

import re
from collections import Counter
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from tasks_app import clock
from tasks_app.admin.text import reveal
from tasks_app.ids import uuid7_at
from tasks_app.operators import lookup, reach

RECENT = 1_000
"""Newest rows from which a filter takes the values it offers."""
SEARCHED = 100_000
"""Newest rows of a table among which a filter looks for those, if its operator sees some of the rows only."""
CHOICES = 20
"""Values that a filter offers at most. Callers can invent any number of method names."""
NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
"""The key of an owner."""
AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


class ListFilter(admin.SimpleListFilter):
    """A filter by one query parameter."""

    is_closed = True
    """True if only the offered values are possible."""

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        raise NotImplementedError

    def has_output(self) -> bool:
        # Django would drop a filter without choices and show the unfiltered list.
        return True

    @property
    def is_indexed(self) -> bool:
        """True if an index finds the matching rows, newest first, even if there are very few."""
        return False

    @property
    def problem(self) -> str:
        """The error message for an impossible value; empty for a possible one."""
        value = str(self.value() or "")
        wrong = f"{self.parameter_name}={reveal(value[:100])} is not a possible value."
        if "\0" in value:
            return f"{wrong} No row has the character U+0000."
        values = [str(choice) for choice, _ in self.lookup_choices]
        if not self.is_closed or self.value() is None or value in values:
            return ""
        return f"{wrong} Choose one of {', '.join(values)}."


class ExactFilter(ListFilter):
    """A filter that compares the column named like the parameter with one value."""

    unindexed: str | None = None
    """The value that the partial index on the column leaves out; None if the column has no index."""

    @property
    def is_indexed(self) -> bool:
        return self.unindexed is not None and self.value() != self.unindexed

    def column_value(self) -> str | None:
        """Return the value to compare the column with."""
        return self.value()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None or self.problem:
            return queryset if self.value() is None else queryset.none()
        return lookup.filter_by(queryset, **{self.parameter_name or "": self.column_value()})


def newest_visible(request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
    """Return the newest rows that the operator may see. No index has their tenants, so not all rows are looked at."""
    every = model._default_manager.order_by("-pk")
    rows = reach.limit(request.user, every)
    if not reach.is_limited(request.user, model):
        return rows
    lowest = every.values_list("pk", flat=True)[SEARCHED - 1 : SEARCHED].first()
    return rows if lowest is None else rows.filter(pk__gte=lowest)


class RecentFilter(ExactFilter):
    """A filter for a column with many values. It offers frequent values of the newest rows and accepts any other."""

    is_closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        rows = newest_visible(request, model_admin.model).values_list(self.parameter_name or "", flat=True)
        counted = Counter(value for value in rows[:RECENT] if value)
        return [(value, reveal(value)) for value, _ in counted.most_common(CHOICES)]


class OwnerFilter(ExactFilter):
    """A filter of a table whose index has the owner. It offers the most frequent owners of the newest rows."""

    title = "owner"
    parameter_name = "owner_id"
    is_closed = False

    @property
    def is_indexed(self) -> bool:
        return True

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        rows = newest_visible(request, model_admin.model)
        rows = rows.values_list("owner_id", "owner__name", "owner__tenant__name")
        counted = Counter(rows[:RECENT])
        return [(str(pk), reveal(f"{name} ({tenant})")) for (pk, name, tenant), _ in counted.most_common(CHOICES)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is not None and not NUMBER.fullmatch(self.value() or ""):
            return queryset.none()
        return super().queryset(request, queryset)


class CreatedFilter(ListFilter):
    title = parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(age, f"last {age}") for age in AGES]

    @property
    def is_indexed(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        age = AGES.get(self.value() or "")
        if age is None:
            return queryset if self.value() is None else queryset.none()
        # Ids begin with the creation time, and their index gives the order of the list.
        return queryset.filter(pk__gte=uuid7_at(clock.now() - age))
