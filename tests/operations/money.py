"""Stored budgets of persons, and their amounts in dollars."""

from a2a.money import MICRO
from tasks_app.models import Budget, Principal, Tenant
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.budgets import set_budget
from tests.conftest import Person

OPS = Operator(name="ops", door=COMMAND)


def limit(person: Person, dollars: float, period: str = "total", *, tenant: bool = False) -> Budget:
    """Give a person, or the person's tenant, a budget."""
    kind, pk = (Tenant, person.caller.tenant_id) if tenant else (Principal, person.caller.owner_id)
    return set_budget(kind.objects.get(pk=pk), int(dollars * MICRO), period, OPS)


def amounts(budget: Budget) -> tuple[float, float]:
    """Return what is reserved and what is spent, in dollars."""
    budget.refresh_from_db()
    return budget.reserved / MICRO, budget.spent / MICRO
