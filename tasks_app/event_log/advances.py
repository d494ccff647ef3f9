"""Advances: money of stored budgets that a process has reserved for calls of quick agents to come.

Without one, such a call makes two commits: it reserves before its agent runs, and settles with its task. With one, the
call is admitted in memory, and the commit of its task notes its cost. Its budgets are charged when the advance ends. An
advance is a reservation under an id of its own, which is given back like that of a call that died if its process dies.
"""

from collections.abc import Sequence
from typing import Any, Self

from django.db import transaction
from msgspec import Struct

from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.tables import RESERVATIONS
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log.charged import Release, by_budgets, orphan_rows
from tasks_app.event_log.create import Create, KeyTarget, create_postgres, results_of, write_new
from tasks_app.limits.budgets import Balance, Charge, balances, reserve, settle
from tasks_app.limits.draws import Draw, charge_drawn, draw_postgres, draw_sqlite
from tasks_app.limits.lock_waits import lock_waits

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


class EndAdvance(Release, frozen=True, kw_only=True):
    """The end of an advance. What is left of it is given back, and its budgets are charged what its calls have cost:
    `spent` for those that have stored no task. Done twice, it charges once."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        return by_budgets(items, _end)


class ChargeDrawn(Work[None], Struct, frozen=True, kw_only=True):
    """The costs so far of calls that drew on an advance, charged before its end. The advance stays reserved."""

    lane = "write"
    repeatable = True

    charge: Charge

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        return by_budgets(items, _charge)


class CreateAdvanced(Create, kw_only=True):
    """A task or direct reply of a quick agent whose call had an advance."""

    charge: Charge
    draws: list[Draw]
    """One for each of the budgets."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[KeyTarget | None]]:  # type: ignore[override]
        return by_budgets(items, _create)


def _lend(items: Sequence[Lend]) -> list[int]:
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        # All budgets are locked in the order of their ids. Groups that lock theirs in different orders would wait for
        # one another, each until its wait is refused.
        locked = balances(cursor, {id for item in items for id in item.charge.budgets})
        left = {balance.id: balance for balance in locked}
        return [_lend_one(cursor, item.charge, left) for item in items]


def _lend_one(cursor: Any, charge: Charge, left: dict[int, Balance]) -> int:
    """Make one advance, and take its amount off what is left."""
    own = [left[id] for id in charge.budgets if id in left]
    amount = min((balance.left for balance in own), default=0) // SHARE
    is_lent = len(own) == len(charge.budgets) and all(balance.left * 2 >= balance.amount for balance in own)
    if not is_lent or amount < charge.least:
        return 0
    left.update({balance.id: balance._replace(left=balance.left - amount) for balance in own})
    reserve(cursor, dict.fromkeys(sorted(charge.budgets), amount))
    RESERVATIONS.write(cursor, orphan_rows(charge, charge.budgets, amount))
    return amount


def _end(items: Sequence[EndAdvance]) -> list[None]:
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        spent = {item.charge.task_id: item.spent for item in items}
        settle(cursor, spent)
        charge_drawn(cursor, spent)
    return [None] * len(items)


def _charge(items: Sequence[ChargeDrawn]) -> list[None]:
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        charge_drawn(cursor, {item.charge.task_id for item in items})
    return [None] * len(items)


def _create(items: Sequence[CreateAdvanced]) -> list[Any]:
    """Store the items, and note what those that are stored draw on their advances."""
    if on_postgres():
        draws = []
        for place, item in enumerate(items):
            for draw in item.draws:
                draw.n = place
                draws.append(draw)
        return results_of(items, create_postgres(items, *draw_postgres(draws)))
    with prepared() as cursor, transaction.atomic():
        winners = write_new(items)
        draw_sqlite(cursor, [draw for place in sorted(winners) for draw in items[place].draws])
        return results_of(items, winners)
