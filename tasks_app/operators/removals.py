"""Rows that another operator removes between the look and the act of a verb."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError
from django.db.models import Model

SENTENCE = "It was removed meanwhile."


class RowRemoved(Exception):
    """Raised for an act on a row that does not exist any more. The sentence says so."""


@contextmanager
def watching(row: Model) -> Iterator[None]:
    """Act on a row that was read before. Raises RowRemoved if the act fails because the row is gone.

    An act locks its row and reads it again, or updates it. Either fails for a row that is gone, each in its own way, so
    the row is looked for after the failure.
    """
    try:
        yield
    except (ObjectDoesNotExist, DatabaseError):
        if type(row)._default_manager.filter(pk=row.pk).exists():
            raise
        raise RowRemoved(SENTENCE) from None
