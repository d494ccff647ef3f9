"""Pages of a resource by a cursor: a page deep in a list costs what the first one does."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

LIMIT, MOST = 50, 500
"""Rows of a page by default, and at most."""
LONGEST = 150
"""Characters of the longest primary key."""


class Newest(CursorPagination):
    """Pages by descending id: `limit` rows behind `cursor`. The answer names the next page and the previous one."""

    ordering = "-pk"
    page_size = LIMIT
    page_size_query_param = "limit"
    max_page_size = MOST
    invalid_cursor_message = "The cursor is not one of this list: begin again without one."

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        self.key = queryset.model._meta.pk
        return super().paginate_queryset(queryset, request, view)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return the cursor of the request. Raises NotFound for one that no row could have."""
        cursor: Cursor | None = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        position = str(cursor.position)
        try:
            self.key.to_python(position)
        except ValidationError:
            raise NotFound(self.invalid_cursor_message) from None
        if "\0" in position or len(position) > LONGEST:
            raise NotFound(self.invalid_cursor_message)
        return cursor
