"""Caps: how many open rows of one kind an owner may have, in any number of processes."""

from typing import Any

from django.db.models import QuerySet

from a2a.errors import RateLimited
from tasks_app.callers.principals import lock_owners
from tasks_app.database.locks import LockRefused


def check_cap(owner_id: int, rows: QuerySet[Any], most: int, what: str, seconds: int) -> None:
    """Check that an owner who has these rows may have another one; `most` is 0 without a cap.

    The owner is locked until the end of the transaction, so that one process at a time counts. Raises LockRefused if
    another one does, and RateLimited, after which the caller may come again in so many seconds.
    """
    if not most:
        return
    if not lock_owners([owner_id]):
        raise LockRefused("another transaction counts what this owner has")
    if rows[:most].count() >= most:
        raise RateLimited(seconds, limit=what, most=str(most))
