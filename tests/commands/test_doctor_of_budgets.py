"""The doctor compares stored budgets with their reservations, and those with their tasks."""

from typing import Any

import pytest
from django.db.models import F

from a2a.money import MICRO
from tasks_app.database.bridge import bridge
from tasks_app.event_log import Reserve
from tasks_app.ids import uuid7
from tasks_app.limits.budgets import Charge
from tasks_app.models import Budget, DrawnCost, Reservation, Task
from tests.commands.doctoring import doctor
from tests.conftest import Person
from tests.operations.money import limit, queued
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def found() -> list[dict[str, Any]]:
    return [finding for finding in doctor("--tasks", "0")[0] if finding["kind"] == "budget"]


@pytest.fixture
def budget(owner: Person, open_lanes: None) -> Budget:
    """A budget of which a waiting task reserves a dollar."""
    budget = limit(owner, 10)
    queued(owner)
    assert Reservation.objects.get().amount == MICRO
    return budget


def test_a_budget_that_is_well_has_no_finding(budget: Budget, owner: Person) -> None:
    limit(owner, 5, tenant=True)
    assert not found()


def test_a_budget_that_reserves_another_sum_than_its_tasks_is_found(budget: Budget) -> None:
    Budget.objects.update(reserved=F("reserved") + 250_000)
    (finding,) = found()
    assert finding["subject"] == str(budget.pk)
    assert finding["problem"] == (f"Budget {budget.pk} reserves 1.25 USD, but its reservations are 1.00 USD together.")
    Reservation.objects.all().delete()
    assert "but its reservations are 0.00 USD together" in found()[0]["problem"]


def test_a_reservation_of_a_task_that_has_ended_is_found(budget: Budget) -> None:
    Task.objects.update(state="canceled")
    (finding,) = found()
    task = Task.objects.get()
    assert finding["problem"] == f"Budget {budget.pk} reserves 1.00 USD for task {task.pk}, which has ended."


def test_a_reservation_without_a_task_is_found(budget: Budget) -> None:
    Reservation.objects.update(task_id="gone")
    (finding,) = found()
    assert finding["problem"] == f"Budget {budget.pk} reserves 1.00 USD for task gone, which does not exist."


def test_the_reservation_of_a_call_that_died_is_found_if_nobody_gives_it_back(budget: Budget, hand: Hand) -> None:
    bridge.do(Reserve(charge=Charge(task_id=uuid7(), budgets=(budget.pk,), least=1, most=2 * MICRO)))
    hand.on(minutes=3)
    assert not found(), "the next sweeps will give it back"
    hand.on(minutes=3)
    (finding,) = found()
    assert "reserves 2.00 USD for a call that has ended, which should have been given back at" in finding["problem"]


def test_the_cost_of_calls_with_an_advance_is_found_if_nobody_charges_it(budget: Budget, hand: Hand) -> None:
    DrawnCost.objects.bulk_create(DrawnCost(advance=uuid7(), budget=budget, spent=MICRO) for _ in range(2))
    hand.on(minutes=3)
    assert not found(), "the next sweeps will charge it"
    hand.on(minutes=3)
    (finding,) = found()
    assert finding["problem"] == f"Budget {budget.pk} is not charged 2.00 USD that calls of quick agents have cost."
