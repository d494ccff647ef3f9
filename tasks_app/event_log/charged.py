"""New tasks that reserve money of stored budgets, and the reservations of quick agents, which run before their task is
stored."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

from django.db import OperationalError, transaction
from msgspec import Struct

from tasks_app import clock
from tasks_app.database.locks import is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import ReservationRow
from tasks_app.database.sql import one_of
from tasks_app.database.tables import RESERVATIONS
from tasks_app.database.work import LOCKED, GroupResult, Work
from tasks_app.event_log.create import Create, KeyTarget, results_of, write_new
from tasks_app.limits.budgets import Charge, charge_alone, existing, reserve, settle, share_out
from tasks_app.limits.lock_waits import lock_waits
from tasks_app.models import Task

_TASK = Task._meta.db_table
ORPHAN_AFTER = timedelta(minutes=2)
"""The time after which the reservation of a quick agent's call is given back if the call has stored no task."""


class CreateCharged(Create, kw_only=True):
    """A new task that reserves money. The result is BudgetExceeded if less is left than its minimum."""

    charge: Charge

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[KeyTarget | None]]:  # type: ignore[override]
        return by_budgets(items, _create)


class CreateSettled(Create, kw_only=True):
    """A task or direct reply of a quick agent that has reserved money, and has ended."""

    charge: Charge
    spent: int

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[KeyTarget | None]]:  # type: ignore[override]
        return by_budgets(items, _create_settled)


class Reserve(Work[int], Struct, frozen=True, kw_only=True):
    """The reservation for a call of a quick agent. The result is its amount, or BudgetExceeded."""

    lane = "write"

    charge: Charge

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[int]]:
        return by_budgets(items, _reserve)


class Release(Work[None], Struct, frozen=True, kw_only=True):
    """The end of a reservation whose call has stored no task. Nothing changes if the call has stored one after all."""

    lane = "write"
    repeatable = True

    charge: Charge
    spent: int

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        return by_budgets(items, _release)


class Charging(Protocol):
    """A work item about money of budgets."""

    @property
    def charge(self) -> Charge: ...


Item = TypeVar("Item", bound=Charging)
Wish = TypeVar("Wish", CreateCharged, Reserve)


def by_budgets(items: Sequence[Item], do: Callable[[Sequence[Item]], list[Any]]) -> list[Any]:
    """Do the items in one transaction, or in one for each set of budgets if another transaction has locked a budget."""
    try:
        return do(items)
    except OperationalError as error:
        sets = {item.charge.budgets for item in items}
        if not is_lock_refusal(error):
            raise
        if len(sets) == 1:
            return [LOCKED] * len(items)
    results: dict[int, Any] = {}
    for budgets in sets:
        own = [item for item in items if item.charge.budgets == budgets]
        results |= {id(item): result for item, result in zip(own, by_budgets(own, do), strict=True)}
    return [results[id(item)] for item in items]


# --------------------------------------------------------------- queued tasks


def _create(items: Sequence[CreateCharged]) -> list[Any]:
    """Store the items, each with its maximum reserved. If so much is not left for all, share out what is left.

    The budgets come last, because all tasks of a tenant wait for its row.
    """
    for item in items:
        _reserve_for(item, item.charge.budgets, item.charge.most)
    with prepared() as cursor, transaction.atomic():
        winners = write_new(items)
        results = results_of(items, winners)
        with lock_waits.limited(cursor):
            if reserve(cursor, _sums(items[place].reservations for place in winners)):
                return results
        transaction.set_rollback(True)
    return _create_within(items)


def _create_within(items: Sequence[CreateCharged]) -> list[Any]:
    """Store those items for which enough is left of their budgets, in turn."""
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        shares, parts = _shares_of(cursor, items)
        for item, budgets, share in parts:
            _reserve_for(item, budgets, share)
        admitted = [item for item, _, _ in parts]
        winners = write_new(admitted) if admitted else set()
        results = iter(results_of(admitted, winners))
        _reserve_locked(cursor, [row for place in winners for row in admitted[place].reservations])
    return [next(results) if isinstance(share, int) else share for share in shares]


def _shares_of(cursor: Any, items: Sequence[Wish]) -> tuple[list[Any], list[tuple[Wish, list[int], int]]]:
    """Lock the budgets. Return what each item gets, its share or an error, and for each share the item, its budgets
    that still exist, and the share."""
    shares = share_out(cursor, [item.charge for item in items])
    live = existing(cursor, {id for item in items for id in item.charge.budgets})
    parts = [
        (item, [id for id in item.charge.budgets if id in live], share)
        for item, share in zip(items, shares, strict=True)
        if isinstance(share, int)
    ]
    return shares, parts


def _reserve_for(item: CreateCharged, budgets: Sequence[int], amount: int) -> None:
    """Have the item reserve an amount. A task with less than its maximum may cost no more than that."""
    if item.task is None:
        raise TypeError("a direct reply reserves nothing")
    charge = item.charge
    item.task.reserved = amount if budgets else 0
    item.task.share = amount if amount < charge.most else None
    item.reservations = [ReservationRow(task_id=charge.task_id, budget_id=id, amount=amount) for id in budgets]


def _sums(groups: Any) -> dict[int, int]:
    """Return the sum of the reservations for each budget, in the order of the budgets."""
    sums: Counter[int] = Counter()
    for rows in groups:
        for row in rows:
            sums[row.budget_id] += row.amount
    return dict(sorted(sums.items()))


def _reserve_locked(cursor: Any, rows: Sequence[ReservationRow]) -> None:
    """Reserve what share_out() has given, while the rows of the budgets are locked."""
    if rows and not reserve(cursor, _sums([rows])):
        raise RuntimeError("a budget has changed while its row was locked")


# ------------------------------------------------------------ quick agents


def _reserve(items: Sequence[Reserve]) -> list[Any]:
    """Reserve for each item its maximum. If so much is not left for all, share out what is left."""
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        rows = [row for item in items for row in orphan_rows(item.charge, item.charge.budgets, item.charge.most)]
        if reserve(cursor, _sums([rows])):
            RESERVATIONS.write(cursor, rows)
            return [item.charge.most for item in items]
        transaction.set_rollback(True)
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        shares, parts = _shares_of(cursor, items)
        rows = [row for item, budgets, share in parts for row in orphan_rows(item.charge, budgets, share)]
        _reserve_locked(cursor, rows)
        RESERVATIONS.write(cursor, rows)
    return list(shares)


def orphan_rows(charge: Charge, budgets: Collection[int], amount: int) -> list[ReservationRow]:
    """Return the rows of a reservation whose task is not stored yet."""
    end = clock.now() + ORPHAN_AFTER
    return [ReservationRow(task_id=charge.task_id, budget_id=id, amount=amount, orphan_at=end) for id in budgets]


def _create_settled(items: Sequence[CreateSettled]) -> list[Any]:
    """Store the items, and settle the reservations of those that are new. The call of a message that was sent before
    releases its own.

    A reservation is gone if this process was frozen until it was given back. Then the budgets are charged all the same.
    An item that is done again after its commit was in doubt is not new. That commit has charged the budgets.
    """
    with prepared() as cursor, transaction.atomic():
        winners = write_new(items)
        results = results_of(items, winners)
        new = [items[place] for place in sorted(winners)]
        with lock_waits.limited(cursor):
            settled = settle(cursor, {item.charge.task_id: item.spent for item in new})
            amounts: Counter[int] = Counter()
            for item in new:
                if item.charge.task_id not in settled:
                    amounts.update(dict.fromkeys(item.charge.budgets, item.spent))
            charge_alone(cursor, amounts)
    return results


def _release(items: Sequence[Release]) -> list[Any]:
    """End the reservations, but for those that belong to a stored task now: its end settles them.

    The write of a call that was given up may have been under way. It was done before this, in the same lane.
    """
    condition, ids = one_of("id", [item.charge.task_id for item in items])
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        cursor.execute(f"select id from {_TASK} where {condition}", ids)
        stored = {id for (id,) in cursor.fetchall()}
        settle(cursor, {item.charge.task_id: item.spent for item in items if item.charge.task_id not in stored})
    return [None] * len(items)
