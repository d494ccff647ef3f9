"""Money: the budget of a call, stored budgets, reservations and what becomes of them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from a2a.errors import BudgetExceeded, Unavailable
from a2a.money import MICRO
from a2a.requests import CancelTask
from tasks_app.database.bridge import bridge
from tasks_app.event_log import CreateSettled, Release, Reserve, claim
from tasks_app.ids import uuid7
from tasks_app.limits import budgets as stored_budgets
from tasks_app.limits.budgets import Charge
from tasks_app.limits.periods import end_of
from tasks_app.models import Act, Budget, IdempotencyKey, Principal, Reservation, Task
from tasks_app.operators.budgets import describe, find_budget
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.orphans import release_orphans
from tests.conftest import Person, until
from tests.operations.asking import ask, message, sent, text_of, words
from tests.operations.money import amounts, ask_quickly, limit, queued
from tests.operations.rows import expire, together, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


# ------------------------------------------------------------------ admission


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize("agent", ["priced", "priced-quick"])
def test_fifty_parallel_sends_with_a_budget_for_ten_admit_exactly_ten(owner: Person, agent: str) -> None:
    budget = limit(owner, 10)
    results = together(50, lambda _: queued(owner, "1", agent))
    admitted = [result for result in results if isinstance(result, str)]
    refused = [result for result in results if isinstance(result, BudgetExceeded)]
    assert (len(admitted), len(refused)) == (10, 40), [result for result in results if result not in refused]
    assert Task.objects.count() == IdempotencyKey.objects.count() == 10, "what is refused leaves nothing"
    assert amounts(budget) == ((10, 0) if agent == "priced" else (0, 10))


@pytest.mark.usefixtures("lanes")
def test_a_task_reserves_its_maximum_or_what_is_left_but_not_less_than_its_minimum(owner: Person) -> None:
    budget = limit(owner, 2.75)
    ids = [queued(owner) for _ in range(3)]
    assert list(Task.objects.filter(pk__in=ids).order_by("id").values_list("reserved", "share")) == [
        (MICRO, None),
        (MICRO, None),
        (MICRO * 3 // 4, MICRO * 3 // 4),
    ], "a task that got less may not cost more than that"
    limit(owner, 3.249_999)
    with pytest.raises(BudgetExceeded) as refused:
        queued(owner)
    facts = {"budget": "principal", "available": "0.499999", "required": "0.50", "currency": "USD"}
    assert (refused.value.facts, amounts(budget)) == (facts, (2.75, 0))


@pytest.mark.usefixtures("lanes")
def test_a_budget_of_the_tenant_holds_for_all_its_principals_and_for_nobody_else(
    owner: Person, colleague: Person, stranger: Person
) -> None:
    tenants, own = limit(owner, 1.5, tenant=True), limit(owner, 5)
    queued(owner)
    queued(colleague)
    for person in (owner, colleague):
        with pytest.raises(BudgetExceeded) as refused:
            queued(person)
        assert refused.value.facts["budget"] == "tenant"
    queued(stranger)
    assert (amounts(tenants), amounts(own)) == ((1.5, 0), (1, 0))


@pytest.mark.usefixtures("lanes")
def test_a_message_sent_again_gets_its_task_whatever_is_left_by_now(owner: Person) -> None:
    budget = limit(owner, 1)
    first = message("0.25")
    task = sent(owner, first, "priced", return_immediately=True)
    assert sent(owner, first, "priced", return_immediately=True).id == task.id
    assert (amounts(budget), Reservation.objects.count()) == ((1, 0), 1)


@pytest.mark.usefixtures("lanes")
def test_an_agent_without_a_cost_is_no_business_of_a_budget(owner: Person) -> None:
    limit(owner, 0)
    assert queued(owner, agent="form-coroutine", budget=0)
    assert not Reservation.objects.exists()


@pytest.mark.usefixtures("lanes")
def test_a_budget_that_was_removed_limits_nothing_even_where_it_is_remembered(owner: Person) -> None:
    limit(owner, 0.75)
    queued(owner)
    remembered = dict(stored_budgets._remembered)
    Budget.objects.all().delete()
    stored_budgets._remembered.update(remembered)
    assert Task.objects.get(pk=queued(owner)).reserved == 0


@pytest.mark.usefixtures("lanes")
def test_a_budget_of_the_call_is_refused_below_the_minimum_and_kept_with_the_task(owner: Person) -> None:
    for budget in (0, 499_999):
        with pytest.raises(BudgetExceeded) as refused:
            queued(owner, budget=budget)
        assert (refused.value.facts["budget"], refused.value.facts["required"]) == ("X-Budget-USD", "0.50")
    stored = limit(owner, 10)
    assert Task.objects.get(pk=queued(owner, budget=500_000)).budget == 500_000
    assert amounts(stored) == (1, 0), "a report that exceeds the budget of the call counts"


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("agent", ["priced", "priced-quick"])
def test_a_small_budget_of_the_call_spends_no_more_of_a_stored_budget_than_there_is(owner: Person, agent: str) -> None:
    """Send many messages at once, each of which costs twice the budget of its call."""
    budget = limit(owner, 3)
    results = together(12, lambda _: queued(owner, "1", agent, budget=500_000))
    admitted = [result for result in results if isinstance(result, str)]
    assert len(admitted) + sum(isinstance(result, BudgetExceeded) for result in results) == 12, results
    until(lambda: not Reservation.objects.exists(), "all of them are settled")
    assert (len(admitted), amounts(budget)) == (3, (0, 3))


# ----------------------------------------------------------------- settlement


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    ("text", "state", "cost"),
    [
        ("0.25 0.5", "completed", 0.75),
        ("", "completed", 0),
        ("0.25 fail", "failed", 0.25),
        ("0.25 again 0.125", "completed", 0.625),
        ("0.9 0.9", "completed", 1.8),
    ],
)
def test_a_task_that_ends_is_charged_what_its_runs_have_reported(
    owner: Person, text: str, state: str, cost: float
) -> None:
    budget = limit(owner, 10)
    task = sent(owner, text, "priced")
    assert task.status.state == state
    row = Task.objects.get()
    assert (row.spent, row.reserved) == (cost * MICRO, 0)
    assert (amounts(budget), Reservation.objects.exists()) == ((0, cost), False)


@pytest.mark.usefixtures("service")
def test_a_canceled_task_is_charged_what_it_has_reported_so_far(owner: Person) -> None:
    budget = limit(owner, 10)
    task_id = queued(owner, "0.25 wait")
    until(lambda: Task.objects.get().spent, "the report is written")
    ask(owner, CancelTask(id=task_id))
    assert amounts(budget) == (0, 0.25)


@pytest.mark.usefixtures("lanes")
def test_a_task_that_ends_without_a_run_gives_back_what_it_reserved(owner: Person) -> None:
    budget = limit(owner, 10)
    ask(owner, CancelTask(id=queued(owner)))
    assert amounts(budget) == (0, 0)


@pytest.mark.usefixtures("lanes")
def test_a_task_whose_worker_is_lost_is_settled_at_its_end_and_not_before(owner: Person) -> None:
    budget = limit(owner, 10)
    queued(owner)
    for left in (1, 0):
        (read,) = claim(wish(agents=("priced",)))
        Task.objects.update(spent=(2 - left) * MICRO)  # as its run reported
        expire(read)
        reclaim_tasks()
        assert amounts(budget) == ((1, 0) if left else (0, 2))
        Task.objects.update(not_before=None)
    assert Task.objects.get().state == "failed"


@pytest.mark.usefixtures("service")
def test_a_question_keeps_the_reservation_until_the_task_ends(owner: Person) -> None:
    budget = limit(owner, 10)
    task = sent(owner, "0.25 ask", "priced")
    assert (task.status.state, amounts(budget)) == ("input_required", (1, 0))
    sent(owner, message("0.5", task_id=task.id))
    assert amounts(budget) == (0, 0.75), "both runs count"


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("agent", ["priced", "priced-quick"])
def test_a_run_that_spends_more_than_its_budget_is_stopped_and_charged_in_full(owner: Person, agent: str) -> None:
    budget = limit(owner, 10)
    task = sent(owner, "0.5 0.25 0.25", agent, budget=600_000)
    assert task.status.state == "failed"
    assert "it has cost 0.75 USD, and may cost 0.60 USD" in words(task)
    assert (amounts(budget), Task.objects.get().spent) == ((0, 0.75), 750_000)


@pytest.mark.usefixtures("service")
def test_a_run_knows_its_budget_and_what_it_has_spent(owner: Person) -> None:
    assert text_of(sent(owner, "0.25", "priced", budget=900_000)) == "0.25 of 0.9"
    assert text_of(sent(owner, "0.25", "priced")) == "0.25 of None"


@pytest.mark.usefixtures("lanes")
def test_a_reservation_of_a_quick_agent_is_settled_with_its_answer(owner: Person) -> None:
    budget = limit(owner, 10)
    for text, spent in {"0.25": 0.25, "0.125 reply": 0.375, "2": 2.375}.items():
        ask_quickly(owner, text)
        assert (amounts(budget), Reservation.objects.exists()) == ((0, spent), False)
    ask_quickly(owner, "0.5 ask")
    assert amounts(budget) == (1, 2.375), "a task that waits for an answer keeps its reservation"
    ask(owner, CancelTask(id=Task.objects.get(state="input_required").id))
    assert amounts(budget) == (0, 2.875)


@pytest.mark.usefixtures("lanes")
def test_a_reservation_is_settled_once_however_often_its_end_is_written(owner: Person) -> None:
    budget = limit(owner, 10)
    charge = Charge(task_id=uuid7(), budgets=(budget.pk,), least=0, most=MICRO)
    bridge.do(Reserve(charge=charge))
    for _ in range(2):
        bridge.do(Release(charge=charge, spent=250_000))
    assert amounts(budget) == (0, 0.25)


@pytest.mark.usefixtures("lanes")
def test_a_task_without_a_minimum_needs_a_millionth(owner: Person) -> None:
    charges = [Charge(task_id=uuid7(), budgets=(limit(owner, 1).pk,), least=0, most=MICRO) for _ in range(2)]
    bridge.do(Reserve(charge=charges[0]))
    with pytest.raises(BudgetExceeded) as refused:
        bridge.do(Reserve(charge=charges[1]))
    assert (refused.value.facts["available"], refused.value.facts["required"]) == ("0.00", "0.000001")


# -------------------------------------------------------------------- periods


@pytest.mark.usefixtures("lanes")
def test_a_period_begins_anew_with_the_first_change_after_its_end(owner: Person, hand: Any) -> None:
    budget = limit(owner, 1.25, "day")
    ask_quickly(owner, "1")
    with pytest.raises(BudgetExceeded):
        queued(owner)
    budget.refresh_from_db()
    assert describe(budget)["spent"] == "1.00"
    hand.on(days=1)
    budget.refresh_from_db()
    assert describe(budget)["spent"] == "0.00", "what is past does not count, although no row was changed"
    task_id = queued(owner)
    assert amounts(budget) == (1, 0)
    hand.on(days=1)
    ask(owner, CancelTask(id=task_id))
    assert amounts(budget) == (0, 0)


def test_setting_a_budget_does_not_bring_back_a_period_that_is_over(owner: Person, hand: Any) -> None:
    budget = limit(owner, 10, "day")
    Budget.objects.update(spent=7 * MICRO)
    limit(owner, 8, "day")
    assert amounts(budget) == (0, 7)
    hand.on(days=1)
    limit(owner, 9, "day")
    assert amounts(budget) == (0, 0)
    before, after = (json.loads(text) for text in Act.objects.values_list("before", "after").latest("at"))
    assert (before["spent"], before["left"]) == ("0.00", "8.00")
    assert (after["spent"], after["left"]) == ("0.00", "9.00")


@pytest.mark.parametrize(
    ("now", "day", "month"),
    [
        ("2026-01-31T23:59:59", "2026-02-01", "2026-02-01"),
        ("2024-02-28T00:00:00", "2024-02-29", "2024-03-01"),
        ("2026-12-31T12:00:00", "2027-01-01", "2027-01-01"),
        ("2026-11-01T00:00:00", "2026-11-02", "2026-12-01"),
    ],
)
def test_a_period_ends_at_midnight_utc(now: str, day: str, month: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    ends = [end_of(period, moment) for period in ("day", "month", "total")]
    assert [end.isoformat()[:19] if end else None for end in ends] == [f"{day}T00:00:00", f"{month}T00:00:00", None]


@pytest.mark.usefixtures("lanes")
def test_another_amount_keeps_what_is_spent_and_another_period_does_not(owner: Person) -> None:
    budget = limit(owner, 2)
    ask_quickly(owner, "1")
    limit(owner, 3)
    assert amounts(budget) == (0, 1)
    limit(owner, 3, "month")
    assert amounts(budget) == (0, 0)
    assert find_budget(Principal.objects.get(pk=owner.caller.owner_id)) == budget


# -------------------------------------------------------------- what goes wrong


@pytest.mark.usefixtures("lanes")
def test_a_call_whose_reservation_was_given_back_meanwhile_is_charged(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was frozen for minutes."""
    budget, store = limit(owner, 10), CreateSettled.do_many

    def freeze(items: Any) -> Any:
        Release.do_many([Release(charge=item.charge, spent=0) for item in items])
        return store(items)

    monkeypatch.setattr(CreateSettled, "do_many", freeze)
    ask_quickly(owner, "0.5")
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 0.5), False)


@pytest.mark.usefixtures("lanes")
def test_a_reservation_of_a_call_that_died_is_given_back_and_that_of_a_stored_task_is_not(
    owner: Person, hand: Any
) -> None:
    budget = limit(owner, 10)
    ask_quickly(owner, "0.5 ask")
    bridge.do(Reserve(charge=Charge(task_id=uuid7(), budgets=(budget.pk,), least=1, most=2 * MICRO)))
    assert (release_orphans(), amounts(budget)) == (0, (3, 0)), "its call may still be at work"
    hand.on(minutes=3)
    assert (release_orphans(), release_orphans(), amounts(budget)) == (1, 0, (1, 0))


@pytest.mark.usefixtures("lanes")
def test_a_quick_agent_that_finds_no_thread_gives_back_what_its_call_reserved(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(run: Any, _: int) -> None:
        run.spend("0.125")
        raise Unavailable(1)

    monkeypatch.setattr("tasks_app.operations.dispatcher.play_quickly", busy)
    budget = limit(owner, 10)
    with pytest.raises(Unavailable):
        ask_quickly(owner, "1")
    until(lambda: not Reservation.objects.exists(), "it is given back")
    assert amounts(budget) == (0, 0.125), "but not what is spent"
