"""Draws on advances: noted in the transaction that stores the task of a call, and charged when the advance ends.

The note is a row of its own. A change of the budget would have the calls of all processes wait for one another.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from tasks_app.database.rows import ReservationRow, Row
from tasks_app.database.sql import one_of
from tasks_app.database.tables import RESERVATIONS, as_json
from tasks_app.limits.budgets import charge_alone
from tasks_app.models import DrawnCost, Reservation

_COST, _RESERVATION = DrawnCost._meta.db_table, Reservation._meta.db_table


class Draw(Row, kw_only=True, gc=False):
    """The amounts of a call at one budget of its advance: a row of a statement, and of no table."""

    advance: str
    """The id that the advance has in place of a task's."""
    budget_id: int
    moved: int
    """The part of the advance that goes on as the reservation of a task; 0 for a call that has ended."""
    spent: int
    """The cost of the call. A reservation that goes on is charged by the end of its task, and not here."""
    task: str
    """The task of that reservation."""


_ROWS = """jsonb_to_recordset(%s::jsonb)
        as x(n bigint, advance text, budget_id bigint, moved bigint, spent bigint, task text) join won using (n)"""
_NOTE = f"""insert into {_COST} (advance, budget_id, spent)
    select advance, budget_id, sum(spent)::bigint from {{draws}} group by 1, 2 having sum(spent) > 0"""
_NOTE_POSTGRES = f", c as ({_NOTE.format(draws=_ROWS)})"
_OTHERS = "d left join a using (advance, budget_id) where d.moved = 0 or a.moved is null"
# 1. d: the draws of the calls that were stored.
# 2. a: take what is moved off the advances. An advance is gone if this process was frozen until it was given back. Then
#    nothing is reserved for the call, so nothing of it may go on as the reservation of a task: it is charged.
# 3. r: the reservations of tasks.
# 4. c: the costs of all other calls.
_MOVE_POSTGRES = f""",
    d as (select x.* from {_ROWS}),
    a as (update {_RESERVATION} r set amount = r.amount - s.moved
        from (select advance, budget_id, sum(moved)::bigint as moved from d where moved > 0 group by 1, 2) s
        where r.task_id = s.advance and r.budget_id = s.budget_id returning s.advance, s.budget_id, s.moved),
    r as (insert into {_RESERVATION} (task_id, budget_id, amount)
        select d.task, d.budget_id, d.moved from d join a using (advance, budget_id) where d.moved > 0),
    c as ({_NOTE.format(draws=_OTHERS)})"""
_MOVE_SQLITE = f"update {_RESERVATION} set amount = amount - %s where task_id = %s and budget_id = %s"
_NOTE_SQLITE = f"insert into {_COST} (advance, budget_id, spent) values (%s, %s, %s)"


def draw_postgres(draws: Sequence[Draw]) -> tuple[str, list[Any]]:
    """Return the SQL by which the statement that stores the calls of a group notes their draws, with its values."""
    return _MOVE_POSTGRES if any(one.moved for one in draws) else _NOTE_POSTGRES, [as_json(draws)]


def draw_sqlite(cursor: Any, draws: Sequence[Draw]) -> None:
    """Note the draws of the calls of a group."""
    costs: Counter[tuple[str, int]] = Counter()
    for one in draws:
        if one.moved:
            cursor.execute(_MOVE_SQLITE, (one.moved, one.advance, one.budget_id))
            if cursor.rowcount:
                row = ReservationRow(task_id=one.task, budget_id=one.budget_id, amount=one.moved)
                RESERVATIONS.write_one(cursor, row)
                continue
        costs[one.advance, one.budget_id] += one.spent
    cursor.executemany(_NOTE_SQLITE, [(*place, spent) for place, spent in costs.items() if spent])


def charge_drawn(cursor: Any, advances: Collection[str]) -> None:
    """Charge the budgets what calls that drew on the advances have cost so far, once."""
    condition, values = one_of("advance", sorted(advances))
    cursor.execute(f"delete from {_COST} where {condition} returning budget_id, spent", values)
    amounts: Counter[int] = Counter()
    for budget_id, spent in cursor.fetchall():
        amounts[budget_id] += spent
    charge_alone(cursor, amounts)


def ended_advances(cursor: Any) -> list[str]:
    """Return up to a hundred advances that are given back, although calls that drew on them are not charged yet. Their
    process was frozen until then."""
    cursor.execute(
        f"select distinct advance from {_COST} c where not exists "
        f"(select 1 from {_RESERVATION} r where r.task_id = c.advance) limit 100"
    )
    return [advance for (advance,) in cursor.fetchall()]
