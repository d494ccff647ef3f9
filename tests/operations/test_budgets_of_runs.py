"""Money for the later runs of a task."""

import pytest

from a2a.errors import BudgetExceeded
from a2a.money import MICRO
from tasks_app.event_log import claim
from tasks_app.models import Task
from tests.conftest import Person
from tests.operations.asking import message, sent, text_of
from tests.operations.money import amounts, limit, queued
from tests.operations.rows import wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.mark.usefixtures("service")
def test_a_later_message_may_not_have_a_budget_below_the_minimum(owner: Person) -> None:
    task = sent(owner, "0.25 ask", "priced", budget=900_000)
    with pytest.raises(BudgetExceeded) as refused:
        sent(owner, message("0.5", task_id=task.id), budget=100_000)
    assert refused.value.facts["budget"] == "X-Budget-USD"
    done = sent(owner, message("0.5", task_id=task.id), budget=500_000)
    assert text_of(done).endswith("0.75 of 0.9"), "the limit is that of the beginning"


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("agent", ["priced", "priced-quick"])
def test_each_run_of_a_task_that_waits_for_answers_needs_cover(owner: Person, agent: str) -> None:
    budget = limit(owner, 2.5)
    task = sent(owner, "1 ask", agent)
    assert amounts(budget) == (1, 0)
    sent(owner, message("0.75 ask", task_id=task.id))
    assert amounts(budget) == (2, 0), "what is spent, and the maximum of the second run"
    sent(owner, message("0.5 ask", task_id=task.id))
    assert amounts(budget) == (2.5, 0), "what is spent, and what was left"
    row = Task.objects.get()
    assert (row.budget, row.share) == (None, 2_500_000)
    with pytest.raises(BudgetExceeded) as refused:
        sent(owner, message("0.5", task_id=task.id))
    assert refused.value.facts == {"budget": "principal", "available": "0.25", "required": "0.50", "currency": "USD"}
    assert Task.objects.get().state == "input_required"
    limit(owner, 3)
    done = sent(owner, message("0.5", task_id=task.id))
    assert text_of(done).endswith("2.75 of 3"), "what the budget had left when it was filled up"
    assert amounts(budget) == (0, 2.75)


@pytest.mark.usefixtures("service")
def test_the_budget_of_a_call_limits_later_runs_whatever_stored_budgets_had_left_before(owner: Person) -> None:
    limit(owner, 0.75)
    task = sent(owner, "0.25 ask", "priced", budget=900_000)
    row = Task.objects.get()
    assert (row.budget, row.share) == (900_000, 750_000)
    limit(owner, 10)
    sent(owner, message("0.5 ask", task_id=task.id))
    row.refresh_from_db()
    assert (row.budget, row.share) == (900_000, None)
    with pytest.raises(BudgetExceeded) as refused:
        sent(owner, message("0.5", task_id=task.id))
    assert refused.value.facts == {"budget": "task", "available": "0.15", "required": "0.50", "currency": "USD"}


@pytest.mark.usefixtures("service")
def test_another_run_is_refused_when_others_have_spent_the_budget(owner: Person) -> None:
    budget = limit(owner, 10)
    task = sent(owner, "0.75 ask", "priced")
    limit(owner, 1)
    with pytest.raises(BudgetExceeded) as refused:
        sent(owner, message("0.5", task_id=task.id))
    assert refused.value.facts == {"budget": "principal", "available": "0.25", "required": "0.50", "currency": "USD"}
    assert amounts(budget) == (1, 0)
    limit(owner, 2)
    assert sent(owner, message("0.5", task_id=task.id)).status.state == "completed"
    assert amounts(budget) == (0, 1.25)


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("spent", [0, MICRO // 2])
def test_a_message_to_a_task_at_work_needs_cover_for_another_run(owner: Person, spent: int) -> None:
    budget = limit(owner, 1.25)
    task_id = queued(owner)
    claim(wish(agents=("priced",)))
    Task.objects.filter(pk=task_id).update(spent=spent)  # as its run reported
    with pytest.raises(BudgetExceeded) as refused:
        sent(owner, message("more", task_id=task_id), return_immediately=True)
    assert refused.value.facts["available"] == "0.25"
    limit(owner, 3)
    for _ in range(2):  # The second message finds what the first has reserved.
        sent(owner, message("more", task_id=task_id), return_immediately=True)
        assert amounts(budget) == (2 + spent / MICRO, 0), "the maximum of two runs, beside what may be of earlier ones"


@pytest.mark.usefixtures("lanes")
def test_a_message_that_another_has_paid_for_is_not_refused(owner: Person) -> None:
    budget = limit(owner, 2)
    task_id = queued(owner)
    claim(wish(agents=("priced",)))
    sent(owner, message("more", task_id=task_id), return_immediately=True)
    Task.objects.filter(pk=task_id).update(spent=MICRO)  # as its run reported
    sent(owner, message("and more", task_id=task_id), return_immediately=True)
    assert (amounts(budget), Task.objects.get().share) == ((2, 0), 2 * MICRO), "it may cost what is reserved"
