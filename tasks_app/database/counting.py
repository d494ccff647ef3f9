"""The outcomes of work items, as /metrics counts them."""

from collections.abc import Sequence
from typing import Any

from django.db import DatabaseError, InterfaceError

from a2a.errors import Error
from tasks_app.counters import db_operations
from tasks_app.database.work import NotDone, Work

DONE, REFUSED, AGAIN, FAILED = "done", "refused", "again", "failed"
_WITHOUT_RESULT = (Exception, NotDone)  # A union would be made anew for each item.


def count_results(kind: type[Work[Any]], results: Sequence[Any]) -> None:
    """Count the results of a group. An item that was not begun, such as for a locked row, is done again."""
    name, done = kind.__name__, 0
    for result in results:
        if isinstance(result, _WITHOUT_RESULT):
            db_operations.add((name, _outcome_of(result)))
        else:
            done += 1
    if done:
        db_operations.add((name, DONE), done)


def _outcome_of(result: Exception | NotDone) -> str:
    """Return the outcome of an item that has no result. A domain error is a refusal, and no fault of the database."""
    if isinstance(result, NotDone):
        return AGAIN
    return REFUSED if isinstance(result, Error) and not isinstance(result, DatabaseError | InterfaceError) else FAILED
