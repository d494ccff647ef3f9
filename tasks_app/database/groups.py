"""Does a group of work items, and chooses another way when the database refuses it."""

import logging
from collections.abc import Sequence
from typing import Any

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    connection,
)

from tasks_app.database.errors import error_for_callers
from tasks_app.database.locks import is_lock_refusal
from tasks_app.database.sessions import is_canceled, is_overloaded, is_spent, is_stalled
from tasks_app.database.work import LOCKED, ItemRefused, Work

log = logging.getLogger(__name__)


def do_group(kind: type[Work[Any]], items: Sequence[Any], *, again: bool = True) -> list[Any]:
    """Return the results in order: an exception for an item that failed, LOCKED for an item that met a locked row."""
    try:
        results = list(kind.do_many(items))
    except Exception as error:  # noqa: BLE001  # it is the result for the callers
        return _retry(kind, items, error, again)
    try:
        kind.after_commit(items, results)
    except Exception:
        # The work is committed, and the lane must go on. Readers find the news at their next poll.
        log.exception("%d %s were done, but others were not notified of them", len(items), kind.__name__)
    return results


def _retry(kind: type[Work[Any]], items: Sequence[Any], error: Exception, again: bool) -> list[Any]:
    """Do the group in another way if it may succeed; else return the error for each item.

    A group that is refused for its data or its size is done in halves, so that a wrong item fails alone. So is a
    group of repeatable items that fails in our code: one of the rows may be damaged.
    """
    if is_lock_refusal(error):
        return [LOCKED] * len(items)
    is_damaged = kind.repeatable and not isinstance(error, DatabaseError | InterfaceError)
    if isinstance(error, DataError | IntegrityError | ItemRefused) or is_overloaded(error) or is_damaged:
        if len(items) > 1:
            half = len(items) // 2
            return do_group(kind, items[:half]) + do_group(kind, items[half:])
        return do_group(kind, items) if items[0].lighten() else [error_for_callers(error)]
    if again and _worth_another_session(kind, error) and not connection.in_atomic_block:
        connection.close()
        return do_group(kind, items, again=False)
    if isinstance(error, DatabaseError | InterfaceError):
        log.warning("a group of %d %s failed: %s", len(items), kind.__name__, error)
    return [error_for_callers(error)] * len(items)


def _worth_another_session(kind: type[Work[Any]], error: Exception) -> bool:
    """Return whether the group may succeed on a new connection.

    After a connection was cut, also by the server because it stalled, reads may be repeated, and so may creates, whose
    ids and keys are fixed. Any work may be repeated that never began: its plan was refused because its table was
    altered, or its session was read-only.
    """
    if isinstance(error, OperationalError | InterfaceError) or is_stalled(error):
        return kind.repeatable and not is_canceled(error)
    return isinstance(error, NotSupportedError) or is_spent(error)
