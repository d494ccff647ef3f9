"""Stored budgets of persons, and their amounts in dollars."""

from typing import Any

from a2a.money import MICRO
from tasks_app.models import Budget, Principal, Tenant
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.budgets import set_budget
from tests.conftest import Person
from tests.operations.asking import send, sent

OPS = Operator(name="ops", door=COMMAND)


def limit(person: Person, dollars: float, period: str = "total", *, tenant: bool = False) -> Budget:
    """Give a person, or the person's tenant, a budget."""
    kind, pk = (Tenant, person.caller.tenant_id) if tenant else (Principal, person.caller.owner_id)
    return set_budget(kind.objects.get(pk=pk), int(dollars * MICRO), period, OPS)


def amounts(budget: Budget) -> tuple[float, float]:
    """Return what is reserved and what is spent, in dollars."""
    budget.refresh_from_db()
    return budget.reserved / MICRO, budget.spent / MICRO


def queued(person: Person, text: str = "0.25", agent: str = "priced", **more: Any) -> str:
    """Begin a task that costs what its message says; return its id."""
    return sent(person, text, agent, return_immediately=True, **more).id


def ask_quickly(person: Person, text: str) -> None:
    """Have a quick agent answer, which costs what the message says."""
    send(person, text, "priced-quick")
