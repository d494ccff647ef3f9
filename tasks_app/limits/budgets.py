"""Stored budgets of principals and tenants: reserved when a task begins, and settled when it ends.

What is left of a budget is its amount without what is spent and what is reserved. A task reserves its maximum cost, or
what is left if that is less, but never less than its minimum. The functions here run in the transaction that writes the
task, so that a reservation exists exactly as long as a task that has not ended.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

from msgspec import Struct

from a2a.dialects.json.json_1_0 import dumps
from a2a.errors import BudgetExceeded
from a2a.money import show_usd
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres, one_of, sql_time
from tasks_app.database.work import Work
from tasks_app.limits.periods import RESETS_AT, SPENT, times
from tasks_app.models import Budget, Reservation, Task

_BUDGET, _RESERVATION, _TASK = Budget._meta.db_table, Reservation._meta.db_table, Task._meta.db_table
FRESH = 1.0
"""Seconds for which a process remembers which budgets a caller has. A new budget limits nothing before."""
MAX_REMEMBERED = 10_000


class Charge(Struct, frozen=True, kw_only=True):
    """The reservation that a new task needs."""

    task_id: str
    budgets: tuple[int, ...]
    least: int
    """The minimum expected cost: with less left, the task is refused."""
    most: int
    """The reservation, if so much is left."""


# ----------------------------------------------------- which budgets a caller has


class FindBudgets(Work[tuple[int, ...]], Struct, frozen=True, kw_only=True):
    """Finds the budgets of a principal and of its tenant."""

    lane = "read"
    repeatable = True

    owner_id: int
    tenant_id: int

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[tuple[int, ...]]:
        of_owners, owners = one_of("principal_id", [item.owner_id for item in items])
        of_tenants, tenants = one_of("tenant_id", [item.tenant_id for item in items])
        with prepared() as cursor:
            cursor.execute(
                f"select id, principal_id, tenant_id from {_BUDGET} "
                f"where {of_owners} or ({of_tenants} and principal_id is null) order by id",
                [*owners, *tenants],
            )
            rows = cursor.fetchall()
        return [
            tuple(
                id
                for id, owner, tenant in rows
                if item.owner_id == owner or (owner is None and item.tenant_id == tenant)
            )
            for item in items
        ]


_remembered: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}


async def budgets_of(caller: Caller) -> tuple[int, ...]:
    """Return the ids of the caller's budgets. An operation awaits it; it asks the database at most once a second."""
    place, now = (caller.owner_id, caller.tenant_id), time.monotonic()
    entry = _remembered.get(place)
    if entry is not None and entry[0] > now:
        return entry[1]
    ids = await FindBudgets(owner_id=caller.owner_id, tenant_id=caller.tenant_id)
    if len(_remembered) >= MAX_REMEMBERED:
        _remembered.clear()
    _remembered[place] = (now + FRESH, ids)
    return ids


def forget() -> None:
    """Forget which budgets callers have, because this process has changed them."""
    _remembered.clear()


# ------------------------------------------------------------ reserving


class Balance(NamedTuple):
    """A budget's row."""

    id: int
    is_of_tenant: bool
    left: int
    amount: int


_RESERVE_POSTGRES = f"""
with x as (select * from jsonb_to_recordset(%s::jsonb) as x(id bigint, amount bigint)),
    l as materialized (select id from {_BUDGET} where id = any(%s) order by id for no key update)
update {_BUDGET} b set reserved = b.reserved + x.amount, spent = {SPENT},
    resets_at = {RESETS_AT.format(a="%s::timestamptz", b="%s::timestamptz")}
from x join l using (id) where b.id = x.id and b.amount - b.reserved - {SPENT} >= x.amount
"""
_RESERVE_SQLITE = f"""
update {_BUDGET} as b set reserved = b.reserved + %s, spent = {SPENT}, resets_at = {RESETS_AT.format(a="%s", b="%s")}
where b.id = %s and b.amount - b.reserved - {SPENT} >= %s
"""


def reserve(cursor: Any, amounts: Mapping[int, int]) -> bool:
    """Add to the reservations of budgets, on the condition that so much is left of each. Return whether it is.

    If not, the caller rolls the transaction back: some of the budgets may have been changed.
    """
    if not amounts:
        return True
    before, day, month = times()
    if on_postgres():
        rows = dumps([{"id": id, "amount": amount} for id, amount in amounts.items()])
        cursor.execute(_RESERVE_POSTGRES, (rows, list(amounts), before, before, day, month, before))
        return bool(cursor.rowcount == len(amounts))
    for id, amount in amounts.items():
        cursor.execute(_RESERVE_SQLITE, (amount, before, before, day, month, id, before, amount))
        if not cursor.rowcount:
            return False
    return True


def balances(cursor: Any, ids: Collection[int], *, locks: bool = True) -> list[Balance]:
    """Return what is left of the budgets that exist, and lock them unless `locks` is false."""
    condition, values = one_of("b.id", sorted(ids))
    cursor.execute(
        f"select b.id, b.principal_id is null, b.amount - b.reserved - {SPENT}, b.amount from {_BUDGET} b "
        f"where {condition} order by b.id {'for no key update' if locks and on_postgres() else ''}",
        [sql_time(clock.now()), *values],
    )
    return [Balance._make(row) for row in cursor.fetchall()]


class ReadRoom(Work[int | None], Struct, frozen=True, kw_only=True):
    """Reads what is left of the tightest of a caller's budgets; None without any. It locks and reserves nothing."""

    lane = "read"
    repeatable = True

    budgets: tuple[int, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[int | None]:
        with prepared() as cursor:
            rows = balances(cursor, {id for item in items for id in item.budgets}, locks=False)
        left = {balance.id: balance.left for balance in rows}
        return [min((left[id] for id in item.budgets if id in left), default=None) for item in items]


def share_out(cursor: Any, charges: Sequence[Charge]) -> list[int | BudgetExceeded]:
    """Lock the budgets of the charges; return what each task in turn may reserve, or its refusal.

    A budget that was deleted meanwhile limits nothing.
    """
    locked = {balance.id: balance for balance in balances(cursor, {id for charge in charges for id in charge.budgets})}
    left = {balance.id: balance.left for balance in locked.values()}
    shares: list[int | BudgetExceeded] = []
    for charge in charges:
        own = [id for id in charge.budgets if id in left]
        tightest = min(own, key=left.__getitem__, default=None)
        room = charge.most if tightest is None else left[tightest]
        if tightest is not None and room < max(charge.least, 1):
            whose = "tenant" if locked[tightest].is_of_tenant else "principal"
            shares.append(refusal(whose, room, max(charge.least, 1)))
            continue
        share = min(charge.most, room)
        for id in own:
            left[id] -= share
        shares.append(share)
    return shares


def orphans(cursor: Any) -> list[str]:
    """Return quick tasks whose call died before it stored them, up to a hundred."""
    cursor.execute(
        f"select distinct task_id from {_RESERVATION} r where orphan_at < %s "
        f"and not exists (select 1 from {_TASK} t where t.id = r.task_id) limit 100",
        [sql_time(clock.now())],
    )
    return [task_id for (task_id,) in cursor.fetchall()]


def existing(cursor: Any, ids: Collection[int]) -> set[int]:
    """Return those of the budgets that still exist."""
    condition, values = one_of("id", list(ids))
    cursor.execute(f"select id from {_BUDGET} where {condition}", values)
    return {id for (id,) in cursor.fetchall()}


def refusal(budget: str, available: int, required: int) -> BudgetExceeded:
    """Return the error for a budget that is less than the minimum expected cost."""
    return BudgetExceeded(budget=budget, available=show_usd(available), required=show_usd(required), currency="USD")


# ------------------------------------------------------------- settling

# 1. gone: delete the reservations of the tasks.
# 2. n: what each budget gets back, and what it is charged.
# 3. l: lock the budgets, in the order of their ids.
# 4. u: give back and charge.
_SETTLE_POSTGRES = f"""
with x as (select * from jsonb_to_recordset(%s::jsonb) as x(task_id text, spent bigint)),
    gone as (delete from {_RESERVATION} where task_id = any(%s) returning task_id, budget_id, amount),
    n as (select gone.budget_id as id, sum(gone.amount)::bigint as amount, sum(x.spent)::bigint as spent
        from gone join x using (task_id) group by gone.budget_id),
    l as materialized (select id from {_BUDGET} where id in (select id from n) order by id for no key update),
    u as (update {_BUDGET} b set reserved = b.reserved - n.amount, spent = {SPENT} + n.spent,
        resets_at = {RESETS_AT.format(a="%s::timestamptz", b="%s::timestamptz")}
        from n join l using (id) where b.id = n.id)
select distinct task_id from gone
"""
_SETTLE_SQLITE = f"""
update {_BUDGET} as b set reserved = b.reserved - %s, spent = {SPENT} + %s,
    resets_at = {RESETS_AT.format(a="%s", b="%s")}
where b.id = %s
"""


_CHARGE_ALONE = f"update {_BUDGET} as b set spent = {SPENT} + %s, resets_at = {RESETS_AT} where b.id = %s"


def charge_alone(cursor: Any, amounts: Mapping[int, int]) -> None:
    """Charge budgets for costs without a reservation, in the order of their ids. A deleted budget pays nothing."""
    before, day, month = times()
    time = "%s::timestamptz" if on_postgres() else "%s"
    for id in sorted(amounts):
        cursor.execute(_CHARGE_ALONE.format(a=time, b=time), (before, amounts[id], before, day, month, id))


def settle(cursor: Any, spent: Mapping[str, int]) -> set[str]:
    """End the reservations of tasks, and charge their budgets what the tasks have cost.

    Return the tasks that had reservations.
    """
    if not spent:
        return set()
    before, day, month = times()
    if on_postgres():
        rows = dumps([{"task_id": task_id, "spent": amount} for task_id, amount in spent.items()])
        cursor.execute(_SETTLE_POSTGRES, (rows, list(spent), before, before, day, month))
        return {task_id for (task_id,) in cursor.fetchall()}
    reserved: Counter[int] = Counter()
    charged: Counter[int] = Counter()
    condition, values = one_of("task_id", list(spent))
    cursor.execute(f"delete from {_RESERVATION} where {condition} returning task_id, budget_id, amount", values)
    gone = cursor.fetchall()
    for task_id, budget_id, amount in gone:
        reserved[budget_id] += amount
        charged[budget_id] += spent[task_id]
    for id, amount in reserved.items():
        cursor.execute(_SETTLE_SQLITE, (amount, before, charged[id], before, day, month, id))
    return {task_id for task_id, _, _ in gone}
