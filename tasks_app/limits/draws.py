"""Settlement of calls that drew on an advance, in the transaction that stores their tasks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from a2a.dialects.json.json_1_0 import dumps
from tasks_app.database.rows import ReservationRow
from tasks_app.database.tables import RESERVATIONS
from tasks_app.limits.budgets import LOCK_PATIENCE, SETTLE_SQLITE
from tasks_app.limits.periods import RESETS_AT, SPENT, times
from tasks_app.models import Budget, Reservation

_BUDGET, _RESERVATION = Budget._meta.db_table, Reservation._meta.db_table


class Draw(NamedTuple):
    """The part of an advance that a call has used up."""

    advance: str
    """The id that the advance has in place of a task's."""
    amount: int
    back: int
    """The part of the amount that is not reserved any more; the rest goes on as the reservation of a task."""
    spent: int
    """The cost of the call. It is charged now, unless a reservation goes on, whose end charges it."""
    task: str
    """The task of that reservation."""
    budgets: tuple[int, ...]
    """The budgets of the advance."""


# 1. p: limit the wait for locks, as wait_briefly() does, but within the statement.
# 2. d: the items that were stored, with each of their budgets.
# 3. a: take what is drawn off the advances. An advance is gone if this process was frozen until it was given back. Then
#    nothing is reserved for the item, so nothing of it may go back, or on as the reservation of a task: it is charged.
# 4. r: the reservations of tasks.
# 5. m: what each budget gets back, and what it is charged.
# 6. l, u: lock the budgets, in the order of their ids, and charge them.
DRAW_POSTGRES = f""",
    x as (select * from jsonb_to_recordset(%s::jsonb)
        as x(n bigint, advance text, amount bigint, back bigint, spent bigint, task text, budgets bigint[])),
    p as materialized (select set_config('lock_timeout', '{LOCK_PATIENCE}', true)),
    d as (select x.*, b.id as budget_id from x join won using (n) cross join unnest(x.budgets) as b(id)),
    a as (update {_RESERVATION} r set amount = r.amount - s.amount
        from (select advance, sum(amount)::bigint as amount from x join won using (n) group by advance) s
        where r.task_id = s.advance returning r.task_id as advance, r.budget_id),
    r as (insert into {_RESERVATION} (task_id, budget_id, amount)
        select d.task, d.budget_id, d.amount - d.back from d join a using (advance, budget_id) where d.amount > d.back),
    m as (select d.budget_id as id, coalesce(sum(d.back) filter (where a.advance is not null), 0)::bigint as amount,
        coalesce(sum(d.spent) filter (where a.advance is null or d.amount = d.back), 0)::bigint as spent
        from d left join a using (advance, budget_id) group by d.budget_id),
    l as materialized (select b.id from {_BUDGET} b cross join p where b.id in (select id from m) order by b.id
        for no key update of b),
    u as (update {_BUDGET} b set reserved = b.reserved - m.amount, spent = {SPENT} + m.spent,
        resets_at = {RESETS_AT.format(a="%s::timestamptz", b="%s::timestamptz")}
        from m join l using (id) where b.id = m.id)
"""
"""SQL that settles calls with an advance, in the statement that stores their tasks."""
_DRAW_SQLITE = f"update {_RESERVATION} set amount = amount - %s where task_id = %s returning budget_id"


def draw_values(draws: Sequence[Draw]) -> list[Any]:
    """Return the values of DRAW_POSTGRES, for the draws of the items of a group in their order."""
    before, day, month = times()
    rows = [{"n": place, **one._asdict()} for place, one in enumerate(draws)]
    return [dumps(rows), before, before, day, month]


def draw_each(cursor: Any, draws: Sequence[Draw]) -> None:
    """Settle calls with an advance on SQLite, where a statement changes one table."""
    before, day, month = times()
    for one in draws:
        cursor.execute(_DRAW_SQLITE, (one.amount, one.advance))
        present = {id for (id,) in cursor.fetchall()}
        for id in one.budgets:
            goes_on = id in present and one.amount > one.back
            back, spent = one.back if id in present else 0, 0 if goes_on else one.spent
            cursor.execute(SETTLE_SQLITE, (back, before, spent, before, day, month, id))
            if goes_on:
                row = ReservationRow(task_id=one.task, budget_id=id, amount=one.amount - one.back)
                RESERVATIONS.write(cursor, [row])
