"""Pages of a resource by a cursor, so that the last page costs what the first does; and pages of one row by numbers."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.core import exceptions
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

LIMIT, MOST = 50, 500
"""Rows of a page by default, and at most."""
LONGEST = 150
"""Characters of the longest primary key."""
DIGITS = 10
"""Digits of a number that are read."""


def read_numbers(request: Request, most: Mapping[str, int], what: str) -> dict[str, int]:
    """Return the query parameters of one row, whole numbers from 1 to the `most` of each. Raises ValidationError."""
    numbers = {}
    for name, value in request.query_params.items():
        if name not in most:
            raise ValidationError({name: f"is not a parameter of {what}; it has {', '.join(most)}"})
        numbers[name] = _read_number(name, str(value), most[name])
    return numbers


def _read_number(name: str, text: str, most: int) -> int:
    """Return a whole number from 1 to `most`. Raises ValidationError."""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS and 1 <= int(text) <= most):
        raise ValidationError({name: f"must be a whole number from 1 to {most}"})
    return int(text)


class WrongCursor(ValidationError):
    """Raised for a cursor that is not one of the list."""

    advice = "Leave `cursor` out for the first page; `next` of its answer is the address of the second."

    def __init__(self) -> None:
        super().__init__({"cursor": "is not one of this list: begin again without one"})


class Newest(CursorPagination):
    """Pages by descending id: `limit` rows behind `cursor`. The answer names the next page and the previous one."""

    ordering = "-pk"
    page_size = LIMIT
    page_size_query_param = "limit"
    max_page_size = MOST

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        self.key = queryset.model._meta.pk
        return super().paginate_queryset(queryset, request, view)

    def get_page_size(self, request: Request) -> int:
        """Return the number of rows of a page. Raises ValidationError."""
        text = request.query_params.get(self.page_size_query_param)
        return LIMIT if text is None else _read_number(self.page_size_query_param, str(text), MOST)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return the cursor of the request. Raises WrongCursor for a text that is no cursor, or whose place no row
        has."""
        try:
            cursor: Cursor | None = super().decode_cursor(request)
        except NotFound:
            raise WrongCursor from None
        if cursor is None:
            return None
        # The decoder skips characters that are not Base64, so any text would be a cursor, often that of the first page.
        own = urlsplit(self.encode_cursor(cursor)).query
        if parse_qs(own).get(self.cursor_query_param) != request.query_params.getlist(self.cursor_query_param)[-1:]:
            raise WrongCursor
        if cursor.position is None:
            return cursor
        position = str(cursor.position)
        try:
            self.key.to_python(position)
        except exceptions.ValidationError:
            raise WrongCursor from None
        if "\0" in position or len(position) > LONGEST:
            raise WrongCursor
        return cursor
