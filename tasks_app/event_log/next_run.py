"""The money for the next run of a task: its reservation grows by what its earlier runs have spent."""

from collections.abc import Sequence
from typing import Any, Self

from django.db import OperationalError, transaction
from msgspec import Struct

from a2a.errors import BudgetExceeded
from tasks_app.database.locks import is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import LOCKED, GroupResult, Work
from tasks_app.limits.budgets import balances, refusal, reserve
from tasks_app.limits.lock_waits import lock_waits
from tasks_app.models import Reservation, Task

_RESERVATION, _TASK = Reservation._meta.db_table, Task._meta.db_table


class ReserveAgain(Work[None], Struct, frozen=True, kw_only=True):
    """The reservation for the next run of a task. The result is BudgetExceeded if less is left than its minimum.

    Afterwards the reservation covers what the task has spent, what its run at work may cost, and the maximum of one
    more run, or what is left for it. Done twice, it reserves once. Amounts are in millionths of a dollar.
    """

    lane = "write"
    repeatable = True

    task_id: str
    at_work: int
    """The maximum cost of the run at work; 0 for a task without one."""
    least: int
    """The minimum expected cost of a run."""
    most: int
    """Its maximum."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        return [_reserve_again(item) for item in items]


def _reserve_again(item: ReserveAgain) -> Any:
    """Reserve for one task, in a transaction of its own: few tasks need it at once, and each has other budgets."""
    try:
        with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
            return _extend(cursor, item)
    except OperationalError as error:
        if is_lock_refusal(error):
            return LOCKED
        raise


def _extend(cursor: Any, item: ReserveAgain) -> BudgetExceeded | None:
    """Enlarge the reservation, or return the refusal.

    Lock the task and then its budgets, as the end of a task does, so that no two transactions wait for each other.
    """
    lock = "for no key update" if on_postgres() else ""
    cursor.execute(f"select reserved, spent from {_TASK} where id = %s {lock}", [item.task_id])
    reserved, spent = cursor.fetchone() or (0, 0)
    cursor.execute(f"select budget_id from {_RESERVATION} where task_id = %s", [item.task_id])
    budgets = sorted(id for (id,) in cursor.fetchall())
    goal = spent + item.at_work + item.most
    if not budgets or goal <= reserved:  # Meanwhile the task has ended, or another message has reserved.
        return None
    tightest = min(balances(cursor, budgets), key=lambda balance: balance.left, default=None)
    if tightest is None:
        return None
    # It is not stored how much of `spent` the run at work has reported. The reservation assumes that it was nothing. A
    # refusal assumes that it was all, so that a message is not refused for which an earlier one has reserved already.
    rest = reserved - max(spent, item.at_work)
    if rest + tightest.left < max(item.least, 1):
        owner = "tenant" if tightest.is_of_tenant else "principal"
        return refusal(owner, rest + tightest.left, item.least)
    share = min(goal - reserved, max(tightest.left, 0))
    if share and not reserve(cursor, dict.fromkeys(budgets, share)):
        raise RuntimeError("a budget has changed while its row was locked")
    cursor.execute(f"update {_RESERVATION} set amount = amount + %s where task_id = %s", [share, item.task_id])
    # A task whose budgets had less left than it needs may cost no more than its reservation.
    cap = reserved + share if reserved + share < goal else None
    cursor.execute(f"update {_TASK} set reserved = reserved + %s, share = %s where id = %s", [share, cap, item.task_id])
    return None
