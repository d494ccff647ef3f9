"""Lists of long tables: newest first, with numbers that are exact or say that they are not.

A filter on an index counts all its rows, as far as that is cheap. Any other filter looks at a window of the newest rows
and says how far back that is: one that matches nothing must not read the whole table.
"""

from typing import Any, NamedTuple, TypeVar

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from tasks_app.admin.filters import ListFilter
from tasks_app.admin.text import moment
from tasks_app.database.sessions import too_slow
from tasks_app.ids import time_of

M = TypeVar("M", bound=Model)

MOST = 1_000
"""Rows that one list pages through; older and newer ones are a link away."""
WINDOW = 100_000
"""Rows that a filter without an index looks at."""
COUNTED = 100_000
"""Rows that are counted where an index has them."""
COUNT_SECONDS = 1
"""How long a count may take on PostgreSQL; after it the rows on the page are what is sure."""
BELOW = "id__lt"
"""The parameter of a list of older rows: ids below it."""


class Total(NamedTuple):
    """A number of rows, or a number that there are at least."""

    number: int
    exact: bool

    def __str__(self) -> str:
        return f"{self.number:,}" if self.exact else f"at least {self.number:,}"


class Pages(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of rows that were counted before."""

    def __init__(self, rows: QuerySet[Any], per_page: int, count: int) -> None:
        super().__init__(rows, per_page)
        self.count = count


class NewestList(ChangeList):
    """A list by descending id, with links to what is older and newer than it shows."""

    model_admin: Any
    floor: str | None = None
    """The oldest id that the filters looked at, if they did not look at all."""
    windowed: QuerySet[Any] | None = None
    """The rows that the window is cut from: as the indexed filters leave them."""
    older = newer = ""
    """The query strings that go on where this list ends and begins."""
    total = Total(0, exact=True)
    capped = False
    """There are more rows than this list pages through."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        return ["-pk"]

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> QuerySet[Any]:
        self.request = request
        found = super().get_queryset(request, exclude_parameters)
        specs = self._specs()
        self.problems = [problem for spec in specs if (problem := spec.problem)]
        if self.problems:
            return found.none()
        if not self.query.strip() and not all(spec.is_indexed for spec in specs):
            self.windowed = self.root_queryset
            for spec in specs:
                if spec.is_indexed:
                    self.windowed = spec.queryset(request, self.windowed)
            rows = self.windowed.filter(pk__lt=self.params[BELOW]) if self.params.get(BELOW) else self.windowed
            self.floor = rows.order_by("-pk").values_list("pk", flat=True)[WINDOW - 1 : WINDOW].first()
            if self.floor is not None:
                found = found.filter(pk__gte=self.floor)
        return found

    def _specs(self) -> list[ListFilter]:
        """Return the filters that are in use."""
        return [spec for spec in self.filter_specs if isinstance(spec, ListFilter) and spec.value() is not None]

    def get_results(self, request: HttpRequest) -> None:
        narrowed = bool(self._specs()) and self.windowed is None
        self.total = counted(self.queryset, COUNTED if narrowed else MOST, self.list_per_page)
        self.capped = not self.total.exact or self.total.number > MOST
        searched = self.model_admin.searched if self.query.strip() else None
        if self.floor is not None or (searched is not None and self.total.number >= searched):
            self.total = self.total._replace(exact=False)
        self.result_count = min(self.total.number, MOST)
        self.paginator = Pages(self.queryset, self.list_per_page, self.result_count)
        if not 1 <= self.page_num <= self.paginator.num_pages:
            self.problems.append(
                f"There is no page {self.page_num}: this list has {self.paginator.num_pages}. This is the first."
            )
            self.page_num = 1
        self.result_list = list(self.paginator.page(self.page_num).object_list)
        self.model_admin.complete(self.result_list)
        self.show_full_result_count = self.can_show_all = False
        self.full_result_count = None
        self.show_admin_actions = True
        self.multi_page = self.paginator.num_pages > 1
        if not self.query.strip():
            self._link()

    def _link(self) -> None:
        """Set the links to older and newer rows."""
        last = (_nth(self.queryset, MOST) if self.capped else None) or self.floor
        if last is not None:
            self.older = self.get_query_string({BELOW: last})
        if below := self.params.get(BELOW):
            self.newer = self.get_query_string({BELOW: self._above(below)})

    def _above(self, below: str) -> str | None:
        """Return the id below which the list of newer rows begins; None for the newest list."""
        everything = self.root_queryset if self.windowed is None else self.windowed
        matching = everything
        for spec in self._specs():
            matching = spec.queryset(self.request, matching)
        ends = [_nth(matching.filter(pk__gte=below).order_by("pk"), MOST + 1)]
        if self.windowed is not None:
            ends.append(_nth(everything.filter(pk__gte=below).order_by("pk"), WINDOW + 1))
        return min((end for end in ends if end is not None), default=None)

    @property
    def looked_back_to(self) -> str:
        """The time of the oldest row that the filters looked at; empty if they looked at all, or found more than one
        list pages through."""
        return moment(time_of(self.floor)) if self.floor and not self.capped else ""

    @property
    def may_choose_all(self) -> bool:
        """Whether an action can be done to all rows of the list, those of other pages too."""
        return self.total.exact and len(self.result_list) < self.total.number <= self.model_admin.at_once


def counted(rows: QuerySet[Any], most: int, sure: int) -> Total:
    """Count the rows, up to a number and for a bounded time; where that does not do, `sure` many are looked for."""
    try:
        found = _count(rows, most + 1)
    except OperationalError as error:
        if not too_slow(error):
            raise
        found, most = _count(rows.order_by("-pk"), sure + 1), sure
    return Total(min(found, most), exact=found <= most)


def _count(rows: QuerySet[Any], most: int) -> int:
    limited = rows if rows.query.order_by == ("-pk",) else rows.order_by()
    if connection.vendor != "postgresql":
        return limited[:most].count()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, true)", [f"{COUNT_SECONDS}s"])
        number: int = limited[:most].count()
        with connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', '0', true)")
        return number


def _nth(rows: QuerySet[Any], number: int) -> str | None:
    found: str | None = rows.values_list("pk", flat=True)[number - 1 : number].first()
    return found


def held(rows: QuerySet[M], most: int) -> tuple[list[M], bool]:
    """The first rows, and whether there are more."""
    found = list(rows[: most + 1])
    return found[:most], len(found) > most
