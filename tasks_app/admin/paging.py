"""Lists of long tables: newest first, never counted to the end, filters that look at a bounded number of rows."""

from collections import Counter
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from tasks_app import clock
from tasks_app.admin.text import visible
from tasks_app.ids import uuid7_at

M = TypeVar("M", bound=Model)

MOST = 1_000
"""Rows that are counted and paged through; what is older is a link away."""
WINDOW = 100_000
"""Rows that a filter looks at: one that matches nothing must not read the whole table."""
RECENT = 1_000
"""Rows that are asked which values occur."""
CHOICES = 20
"""Values offered at most: callers make up method names."""
AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of the first MOST rows."""

    capped = False
    """There are more."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        found: int = rows.order_by()[: MOST + 1].count()
        self.capped = found > MOST
        return min(found, MOST)


class NewestList(ChangeList):
    """A list by descending id, with a link to what is older than it shows."""

    floor: str | None = None
    """The oldest id that the filters looked at, if they did not look at all."""
    older = ""
    """The query string that goes on where this list ends."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        return ["-pk"]

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> QuerySet[Any]:
        found = super().get_queryset(request, exclude_parameters)
        if self.has_active_filters and not self.query.strip():
            rows = self.root_queryset.order_by("-pk")
            if below := self.params.get("id__lt"):
                rows = rows.filter(pk__lt=below)
            self.floor = rows.values_list("pk", flat=True)[WINDOW - 1 : WINDOW].first()
            if self.floor is not None:
                found = found.filter(pk__gte=self.floor)
        return found

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        last = self.floor
        if isinstance(self.paginator, CappedPaginator) and self.paginator.capped:
            last = self.queryset.values_list("pk", flat=True)[MOST - 1 : MOST].first()
        if last is not None and not self.query.strip():
            self.older = self.get_query_string({"id__lt": last})

    @property
    def window(self) -> int:
        return WINDOW


class ExactFilter(admin.SimpleListFilter):
    """One value of the column that the parameter is named after."""

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        raise NotImplementedError

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset if value is None else queryset.filter(**{self.parameter_name or "": value})

    def has_output(self) -> bool:
        # Django drops a filter that has nothing to choose from, and shows everything.
        return True


class RecentFilter(ExactFilter):
    """The same, offering the values that occur in the newest rows, most frequent first."""

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        rows = model_admin.model._default_manager.order_by("-pk").values_list(self.parameter_name or "", flat=True)
        counted = Counter(value for value in rows[:RECENT] if value)
        return [(value, visible(value)) for value, _ in counted.most_common(CHOICES)]


class CreatedFilter(admin.SimpleListFilter):
    title = parameter_name = "created"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(age, f"last {age}") for age in AGES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        age = AGES.get(self.value() or "")
        # By id: it begins with the time, and the list is in its order.
        return queryset if age is None else queryset.filter(pk__gte=uuid7_at(clock.now() - age))


def held(rows: QuerySet[M], most: int) -> tuple[list[M], bool]:
    """The first rows, and whether there are more."""
    found = list(rows[: most + 1])
    return found[:most], len(found) > most
