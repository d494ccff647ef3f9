"""Negotiation: an offer agrees with what a call would get, also from stored budgets, and reserves nothing."""

from typing import Any

import pytest

from a2a.answers import Agreement, Offer
from a2a.errors import BudgetExceeded
from a2a.money import MICRO
from a2a.requests import Negotiate
from tasks_app.models import Task
from tests.conftest import Person
from tests.operations.asking import ask, sent
from tests.operations.money import amounts, limit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.requirement("ADR-02")]


def negotiated(person: Person, *capabilities: str, dollars: float | None = None) -> Agreement:
    budget = None if dollars is None else int(dollars * MICRO)
    agreement: Agreement = ask(person, Negotiate(capabilities=capabilities, budget=budget))
    return agreement


def offered(person: Person, **more: Any) -> Offer:
    """Return the offer for the agent that costs from 0.50 to 1.00."""
    (offer,) = negotiated(person, "priced", **more).offers
    return offer


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("tenant", [False, True])
@pytest.mark.parametrize("left", [0.0, 0.499_999, 0.5, 0.999_999, 1.0])
def test_an_offer_says_what_a_call_then_gets(owner: Person, left: float, tenant: bool) -> None:
    budget = limit(owner, left, tenant=tenant)
    offer = offered(owner)
    assert amounts(budget) == (0, 0), "a negotiation reserves nothing"
    if offer.refusal is BudgetExceeded:
        with pytest.raises(BudgetExceeded):
            sent(owner, "0.25", "priced", return_immediately=True)
        assert left < 0.5
        return
    assert offer.refusal is None
    task = Task.objects.get(pk=sent(owner, "0.25", "priced", return_immediately=True).id)
    assert task.reserved == int(left * MICRO)
    assert offer.is_limited == (task.share is not None) == (left < 1)


@pytest.mark.usefixtures("lanes")
def test_reservations_of_other_calls_lessen_an_offer(owner: Person) -> None:
    limit(owner, 2.2)
    outcomes = []
    for _ in range(3):
        outcomes.append(negotiated(owner, "priced").outcome)
        if outcomes[-1] == "agreement":
            sent(owner, "0.25", "priced", return_immediately=True)
    assert outcomes == ["agreement", "agreement", "refusal"]


@pytest.mark.usefixtures("lanes")
def test_the_tightest_budget_counts(owner: Person, colleague: Person) -> None:
    limit(owner, 5)
    assert offered(owner, dollars=0.7).is_limited
    limit(owner, 0.6, tenant=True)
    assert offered(owner).is_limited
    assert offered(owner, dollars=0.4).refusal is BudgetExceeded
    assert offered(colleague, dollars=5).is_limited


@pytest.mark.usefixtures("lanes")
def test_an_agent_without_a_cost_needs_no_budget(owner: Person, stranger: Person) -> None:
    limit(owner, 0)
    agreement = negotiated(owner, "echo", "priced")
    assert [offer.refusal for offer in agreement.offers] == [None, BudgetExceeded]
    assert agreement.outcome == "degradation"
    assert negotiated(stranger, "echo", "priced").outcome == "agreement"
