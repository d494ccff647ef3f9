"""Lists of long tables, newest first. A number of rows is either exact or marked "at least".

A filter on an index counts all matching rows, up to a bound. Any other filter searches a window of the newest rows, and
the page tells how far back it goes: a filter that matches nothing must not read the whole table.
"""

from typing import Any, NamedTuple

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from tasks_app.admin.filters import ListFilter
from tasks_app.admin.text import format_time
from tasks_app.database.keyset import older_than
from tasks_app.database.sessions import is_canceled
from tasks_app.database.sql import on_postgres
from tasks_app.ids import time_of, uuid7_at

MOST = 1_000
"""Rows that one list pages through. Links lead to older and newer ones."""
WINDOW = 100_000
"""Newest rows that a filter without an index searches."""
MOST_COUNTED = 100_000
"""Rows that are counted if an index finds them."""
COUNT_SECONDS = 1
"""Seconds that a count may take on PostgreSQL. After that only the rows of one page are counted."""
BELOW = "id__lt"
"""The query parameter of a list of older rows: their ids are below its value."""


class Total(NamedTuple):
    """A number of rows, exact or a lower bound."""

    number: int
    exact: bool

    def __str__(self) -> str:
        return f"{self.number:,}" if self.exact else f"at least {self.number:,}"


class Pages(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """A paginator that is given its count."""

    def __init__(self, rows: QuerySet[Any], per_page: int, count: int) -> None:
        super().__init__(rows, per_page)
        self.count = count


class NewestList(ChangeList):
    """A list by descending id, with links to older and newer rows."""

    model_admin: Any
    floor: str | None = None
    """The lowest id in the window; None if the filters searched all rows."""
    windowed: QuerySet[Any] | None = None
    """The rows whose newest ones are the window: those that pass the indexed filters. None if there is no window."""
    older = newer = ""
    """The query strings of the lists of older and of newer rows."""
    total = Total(0, exact=True)
    is_limited = False
    """True if the operator sees the rows of some tenants or agents only."""
    is_capped = False
    """True if there are more rows than this list pages through."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        return ["-pk"]

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> QuerySet[Any]:
        self.request = request
        matching = super().get_queryset(request, exclude_parameters)
        filters = self._active_filters()
        self.problems = [problem for each in filters if (problem := each.problem)]
        if self.problems:
            return matching.none()
        # No index has the tenants or the agents of an operator, so their rows are looked for in a window as well.
        self.is_limited = self.model_admin.is_limited(request)
        if not self.query.strip() and (self.is_limited or not all(each.is_indexed for each in filters)):
            self.windowed = self.model._default_manager.all() if self.is_limited else self.root_queryset
            for each in filters:
                if each.is_indexed:
                    self.windowed = each.queryset(request, self.windowed)
            rows = older_than(self.windowed, self.params.get(BELOW, ""))
            self.floor = self._blur(_find_nth_id(rows.order_by("-pk"), WINDOW))
            if self.floor is not None:
                matching = matching.filter(pk__gte=self.floor)
        return matching

    def _active_filters(self) -> list[ListFilter]:
        """Return the filters that have a value."""
        return [each for each in self.filter_specs if isinstance(each, ListFilter) and each.value() is not None]

    def get_results(self, request: HttpRequest) -> None:
        is_indexed = bool(self._active_filters()) and self.windowed is None
        self.total = count_rows(self.queryset, MOST_COUNTED if is_indexed else MOST, self.list_per_page)
        self.is_capped = not self.total.exact or self.total.number > MOST
        # Rows outside the window, or beyond the candidates of a search, are not counted.
        max_found = self.model_admin.max_found if self.query.strip() else None
        if self.floor is not None or (max_found is not None and self.total.number >= max_found):
            self.total = self.total._replace(exact=False)
        self.result_count = min(self.total.number, MOST)
        self.paginator = Pages(self.queryset, self.list_per_page, self.result_count)
        if not 1 <= self.page_num <= self.paginator.num_pages:
            self.problems.append(
                f"There is no page {self.page_num}: the last page is {self.paginator.num_pages}. "
                "Page 1 is shown instead."
            )
            self.page_num = 1
        self.result_list = list(self.paginator.page(self.page_num).object_list)
        self.model_admin.add_columns(request, self.result_list)
        self.show_full_result_count = self.can_show_all = False
        self.full_result_count = None
        self.show_admin_actions = True
        self.multi_page = self.paginator.num_pages > 1
        if not self.query.strip():
            self._set_links()

    def _set_links(self) -> None:
        """Set the query strings of the lists of older and of newer rows."""
        last = (_find_nth_id(self.queryset, MOST) if self.is_capped else None) or self.floor
        if last is not None:
            self.older = self.get_query_string({BELOW: last})
        if below := self.params.get(BELOW):
            self.newer = self.get_query_string({BELOW: self._find_newer(below)})

    def _find_newer(self, below: str) -> str | None:
        """Return the value of BELOW for the list of newer rows; None for the newest list.

        It goes up from `below` by as many rows as a list pages through, or by one window if that ends sooner.
        """
        unfiltered = self.root_queryset if self.windowed is None else self.windowed
        matching = self.root_queryset if self.is_limited else unfiltered
        for each in self._active_filters():
            matching = each.queryset(self.request, matching)
        ends = [_find_nth_id(matching.filter(pk__gte=below).order_by("pk"), MOST + 1)]
        if self.windowed is not None:
            ends.append(self._blur(_find_nth_id(unfiltered.filter(pk__gte=below).order_by("pk"), WINDOW + 1)))
        return min((end for end in ends if end is not None), default=None)

    def _blur(self, id: str | None) -> str | None:
        """Return the lowest id of the same instant for an operator who may not see the row of the id."""
        time = time_of(id) if id and self.is_limited else None
        return uuid7_at(time) if time else id

    @property
    def oldest_time(self) -> str:
        """The time of the oldest row in the window; empty without a window, or for a list that ends before it."""
        return format_time(time_of(self.floor)) if self.floor and not self.is_capped else ""

    @property
    def can_select_all(self) -> bool:
        """True if one action can take all rows of the list, including those of other pages."""
        return self.total.exact and len(self.result_list) < self.total.number <= self.model_admin.max_selected


def count_rows(rows: QuerySet[Any], most: int, page: int) -> Total:
    """Count the rows, up to `most` and for a bounded time. If time runs out, count up to the size of a page instead."""
    try:
        number = _count(rows, most + 1)
    except OperationalError as error:
        if not is_canceled(error):
            raise
        number, most = _count(rows.order_by("-pk"), page + 1), page
    return Total(min(number, most), exact=number <= most)


def _count(rows: QuerySet[Any], most: int) -> int:
    """Count up to `most` rows, on PostgreSQL for up to COUNT_SECONDS."""
    limited = rows if rows.query.order_by == ("-pk",) else rows.order_by()
    if not on_postgres():
        return limited[:most].count()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, true)", [f"{COUNT_SECONDS}s"])
        number: int = limited[:most].count()
        with connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', '0', true)")
        return number


def _find_nth_id(rows: QuerySet[Any], number: int) -> str | None:
    id: str | None = rows.values_list("pk", flat=True)[number - 1 : number].first()
    return id
