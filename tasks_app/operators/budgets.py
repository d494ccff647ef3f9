"""Acts on stored budgets, each recorded in the transaction of the change."""

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from a2a.money import show_usd
from tasks_app import clock
from tasks_app.limits.budgets import forget
from tasks_app.limits.periods import end_of
from tasks_app.models import Budget, Principal, Tenant
from tasks_app.models.budgets import TOTAL
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.holders import columns_of


class NoBudget(ObjectDoesNotExist):
    """Raised for a holder without a budget."""


def find_budget(holder: Tenant | Principal) -> Budget | None:
    """Return the budget of a tenant or a principal, if it has one."""
    return Budget.objects.select_related("tenant", "principal").filter(**columns_of(holder)).first()


def set_budget(holder: Tenant | Principal, amount: int, period: str | None, by: Operator) -> Budget:
    """Set what the tasks of a tenant or a principal may cost, in millionths of a dollar.

    What is spent and reserved stays, but what is spent begins anew with another period, and if the period is over. None
    leaves the period as it is; that of a new budget is then TOTAL.
    """
    with transaction.atomic():
        while (budget := _find_locked(holder)) is None:  # Another operator may remove it between the two statements.
            Budget.objects.get_or_create(**columns_of(holder), defaults={"amount": 0, "period": TOTAL})
        before, period = describe(budget), period or budget.period
        # Its end moves on here, so that nothing else can tell that the amount is of a former period.
        if budget.period != period or is_over(budget):
            budget.spent = 0
        budget.amount, budget.period, budget.resets_at = amount, period, end_of(period, clock.now())
        budget.save(update_fields=["amount", "period", "spent", "resets_at"])
        record_acts(by, "set", Change(budget, before, describe(budget)))
    forget()
    return budget


def reset_budget(holder: Tenant | Principal, by: Operator) -> Budget:
    """Set what is spent to zero. Reservations of unfinished tasks stay. Raises NoBudget."""
    with transaction.atomic():
        budget = _lock(holder)
        before = describe(budget)
        budget.spent = 0
        budget.save(update_fields=["spent"])
        record_acts(by, "reset", Change(budget, before, describe(budget)))
    return budget


def remove_budget(holder: Tenant | Principal, by: Operator) -> None:
    """Remove the budget, so that nothing limits the holder any more. Raises NoBudget."""
    with transaction.atomic():
        budget = _lock(holder)
        record_acts(by, "remove", Change(budget, describe(budget), {}))
        budget.delete()
    forget()


def describe(budget: Budget) -> dict[str, Any]:
    """Return the columns of a budget that operators see, with amounts in dollars."""
    spent = 0 if is_over(budget) else budget.spent
    return {
        "amount": show_usd(budget.amount),
        "period": budget.period,
        "reserved": show_usd(budget.reserved),
        "spent": show_usd(spent),
        "left": show_usd(budget.amount - budget.reserved - spent),
        "resets_at": budget.resets_at,
    }


def line_of(budget: Budget) -> dict[str, Any]:
    """Return the budget with its holder, as commands and the operators' API show it."""
    principal = budget.principal.name if budget.principal else None
    return {"id": budget.pk, "tenant": budget.tenant.name, "principal": principal, **describe(budget)}


def is_over(budget: Budget) -> bool:
    """Return whether the period has ended, so that what is spent no longer counts."""
    return budget.resets_at is not None and budget.resets_at <= clock.now()


def _lock(holder: Tenant | Principal) -> Budget:
    """Return the budget, locked. Raises NoBudget."""
    budget = _find_locked(holder)
    if budget is None:
        raise NoBudget(f"{holder} has no budget.")
    return budget


def _find_locked(holder: Tenant | Principal) -> Budget | None:
    rows = Budget.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(**columns_of(holder)).first()
