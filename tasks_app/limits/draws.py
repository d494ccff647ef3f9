"""Settlement of calls that drew on an advance, in the transaction that stores their tasks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from a2a.dialects.json.json_1_0 import dumps
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


# 1. p: limit the wait for locks, as wait_briefly() does, but within the statement.
# 2. s: what is drawn from each advance by items that were stored.
# 3. a, m: take it off the advances, and sum it up for each budget.
# 4. l, u: lock the budgets, in the order of their ids, and charge them.
DRAW_POSTGRES = f""",
    x as (select * from jsonb_to_recordset(%s::jsonb)
        as x(n bigint, advance text, amount bigint, back bigint, spent bigint)),
    p as materialized (select set_config('lock_timeout', '{LOCK_PATIENCE}', true)),
    s as (select advance, sum(amount)::bigint as amount, sum(back)::bigint as back, sum(spent)::bigint as spent
        from x join won using (n) group by advance),
    a as (update {_RESERVATION} r set amount = r.amount - s.amount from s where r.task_id = s.advance
        returning r.budget_id, s.back, s.spent),
    m as (select budget_id as id, sum(back)::bigint as amount, sum(spent)::bigint as spent from a group by budget_id),
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
    rows = [
        {"n": place, "advance": one.advance, "amount": one.amount, "back": one.back, "spent": one.spent}
        for place, one in enumerate(draws)
    ]
    return [dumps(rows), before, before, day, month]


def draw_each(cursor: Any, draws: Sequence[Draw]) -> None:
    """Settle calls with an advance on SQLite, where a statement changes one table."""
    before, day, month = times()
    for one in draws:
        cursor.execute(_DRAW_SQLITE, (one.amount, one.advance))
        for (id,) in cursor.fetchall():
            cursor.execute(SETTLE_SQLITE, (one.back, before, one.spent, before, day, month, id))
