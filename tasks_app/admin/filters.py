"""Filters of lists: each on an index, or marked as one that looks at a window of the newest rows."""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app import clock
from tasks_app.admin.text import visible
from tasks_app.ids import uuid7_at
from tasks_app.operators import lookup

RECENT = 1_000
"""Rows that are asked which values occur."""
CHOICES = 20
"""Values offered at most: callers make up method names."""
AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


class ListFilter(admin.SimpleListFilter):
    """One parameter of a list."""

    closed = True
    """The values offered are all that there can be."""

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        raise NotImplementedError

    def has_output(self) -> bool:
        # Django drops a filter that has nothing to choose from, and shows everything.
        return True

    @property
    def is_indexed(self) -> bool:
        """Whether the rows with the value are found by an index, newest first, however few they are."""
        return False

    @property
    def problem(self) -> str:
        """The sentence about a value that there cannot be; empty if there is nothing wrong."""
        values = [str(value) for value, _ in self.lookup_choices]
        if not self.closed or self.value() is None or self.value() in values:
            return ""
        given = visible(str(self.value())[:100])
        return f"{self.parameter_name}={given} is no {self.title}. Choose one of {', '.join(values)}."


class ExactFilter(ListFilter):
    """One value of the column that the parameter is named after."""

    unindexed: str | None = None
    """The one value that the index on this column leaves out; None: there is no index."""

    @property
    def is_indexed(self) -> bool:
        return self.unindexed is not None and self.value() != self.unindexed

    def stored(self) -> str | None:
        """Return the value as the column has it."""
        return self.value()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None or self.problem:
            return queryset if self.value() is None else queryset.none()
        return lookup.filter_by(queryset, **{self.parameter_name or "": self.stored()})


class RecentFilter(ExactFilter):
    """A column with many values: those of the newest rows are offered, most frequent first, and any other is taken."""

    closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        rows = model_admin.model._default_manager.order_by("-pk").values_list(self.parameter_name or "", flat=True)
        counted = Counter(value for value in rows[:RECENT] if value)
        return [(value, visible(value)) for value, _ in counted.most_common(CHOICES)]


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
        # By id: it begins with the time, and the list is in its order.
        return queryset.filter(pk__gte=uuid7_at(clock.now() - age))
