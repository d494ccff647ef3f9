"""Advances: money of stored budgets that a process has reserved for calls of quick agents to come.

Without one, such a call makes two commits: it reserves before its agent runs, and settles with its task. With one, the
call is admitted in memory, and the commit of its task takes its part off the advance. An advance is a reservation under
an id of its own, with an end like that of a call that died.
"""

from collections.abc import Sequence
from typing import Any, Self

from django.db import transaction
from msgspec import Struct

from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.tables import RESERVATIONS
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log.charged import by_budgets, orphan_rows
from tasks_app.event_log.create import Create, KeyTarget, create_postgres, results_of, write_new
from tasks_app.limits.budgets import Charge, balances, reserve, wait_briefly
from tasks_app.limits.draws import DRAW_POSTGRES, Draw, draw_each, draw_values

SHARE = 16
"""The part of what is left of a budget that is lent."""


class Lend(Work[int], Struct, frozen=True, kw_only=True):
    """A new advance. The result is its amount, or 0 if not so much is left of a budget.

    A budget lends a sixteenth of what is left of it, and only while that is half of it or more: no process may refuse
    calls while another has money that it does not need.
    """

    lane = "write"

    charge: Charge
    """The id of the advance in place of a task's, the budgets, and the least amount that is worth it."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[int]]:
        return by_budgets(items, _lend)


class CreateAdvanced(Create, kw_only=True):
    """A task or direct reply of a quick agent whose call had an advance."""

    charge: Charge
    draw: Draw

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[KeyTarget | None]]:  # type: ignore[override]
        return by_budgets(items, _create)


def _lend(items: Sequence[Lend]) -> list[int]:
    return [_lend_one(item.charge) for item in items]


def _lend_one(charge: Charge) -> int:
    with prepared() as cursor, transaction.atomic():
        wait_briefly(cursor)
        left = balances(cursor, charge.budgets)
        amount = min((balance.left for balance in left), default=0) // SHARE
        is_lent = len(left) == len(charge.budgets) and all(balance.left * 2 >= balance.amount for balance in left)
        if not is_lent or amount < charge.least:
            return 0
        reserve(cursor, dict.fromkeys(sorted(charge.budgets), amount))
        RESERVATIONS.write(cursor, orphan_rows(charge, charge.budgets, amount))
        return amount


def _create(items: Sequence[CreateAdvanced]) -> list[Any]:
    """Store the items, and take what they need off their advances, if they are stored."""
    draws = [item.draw for item in items]
    if on_postgres():
        return results_of(items, create_postgres(items, DRAW_POSTGRES, draw_values(draws)))
    with prepared() as cursor, transaction.atomic():
        winners = write_new(items)
        draw_each(cursor, [draws[place] for place in sorted(winners)])
        return results_of(items, winners)
