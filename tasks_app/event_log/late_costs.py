"""The costs that a run reports after its task, or its call, was settled."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from django.db import transaction
from msgspec import Struct

from a2a.states import TERMINAL
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import one_of
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log.charged import by_budgets
from tasks_app.limits.budgets import Charge, charge_alone
from tasks_app.limits.lock_waits import lock_waits
from tasks_app.models import Budget, Task

_BUDGET, _TASK = Budget._meta.db_table, Task._meta.db_table
_ENDED = sorted(state.value for state in TERMINAL)


class ChargeLate(Work[None], Struct, frozen=True, kw_only=True):
    """A cost that no reservation covers any more. The budgets are charged in full, whatever is left of them."""

    lane = "write"

    charge: Charge
    """The task, which has ended, is at work in another run, or was never stored; the amount as the maximum; and the
    budgets that pay. Without any, those of the owner of the task and of its tenant do."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        return by_budgets(items, _charge)


def late_cost(task_id: str, amount: int, budgets: tuple[int, ...] = ()) -> ChargeLate:
    """Return the work item for a late cost, in millionths of a dollar."""
    return ChargeLate(charge=Charge(task_id=task_id, budgets=budgets, least=0, most=amount))


def _charge(items: Sequence[ChargeLate]) -> list[None]:
    """Charge the items. Lock the tasks and then the budgets, as the end of a task does."""
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        amounts: Counter[int] = Counter()
        for one in sorted((item.charge for item in items), key=lambda one: one.task_id):
            _add(cursor, one)
            amounts.update(dict.fromkeys(one.budgets or _budgets_of(cursor, one.task_id), one.most))
        charge_alone(cursor, amounts)
    return [None] * len(items)


def _add(cursor: Any, one: Charge) -> None:
    """Add the cost to that of a task that has ended. One at work gets the sum of the reports of its run."""
    ended, states = one_of("state", _ENDED)
    cursor.execute(f"update {_TASK} set spent = spent + %s where id = %s and {ended}", [one.most, one.task_id, *states])


def _budgets_of(cursor: Any, task_id: str) -> list[int]:
    """Return the budgets of the owner of a task, and of its tenant."""
    cursor.execute(
        f"select b.id from {_BUDGET} b join {_TASK} t on b.principal_id = t.owner_id "
        "or (b.principal_id is null and b.tenant_id = t.tenant_id) where t.id = %s",
        [task_id],
    )
    return [id for (id,) in cursor.fetchall()]
