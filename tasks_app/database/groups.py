"""Doing a group of work items, and what to try when the database refuses it."""

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
from tasks_app.database.sessions import overloaded, spent, too_slow
from tasks_app.database.work import LOCKED, ItemRefused, Work

log = logging.getLogger(__name__)


def do_group(kind: type[Work[Any]], items: Sequence[Any], *, again: bool = True) -> list[Any]:
    """Return the results in order: that of a failed item is its exception, that of one which was not begun LOCKED."""
    try:
        results = list(kind.do_many(items))
    except Exception as error:  # noqa: BLE001  # it is the callers' answer
        return _failed(kind, items, error, again)
    try:
        kind.after_commit(items, results)
    except Exception:
        # What was done is done, and the lane must go on: who missed the news finds it at the next look.
        log.exception("%d %s were done, and the news of it did not get through", len(items), kind.__name__)
    return results


def _failed(kind: type[Work[Any]], items: Sequence[Any], error: Exception, again: bool) -> list[Any]:
    """Try in another way what may succeed so; else return the error for each.

    When a group is refused for its data, or its size, the halves are tried, so that what is wrong with one item is that
    item's error alone.
    """
    if is_lock_refusal(error):
        return [LOCKED] * len(items)
    if isinstance(error, DataError | IntegrityError | ItemRefused) or overloaded(error):
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
    """Tell whether the group may succeed on a new connection.

    A connection was cut: reads may be asked again, and so may creates, whose ids and keys are fixed. Anything may be
    that was not begun: a plan refused it, because its table was altered since, or the session was read-only.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return kind.repeatable and not too_slow(error)
    return isinstance(error, NotSupportedError) or spent(error)
