"""Advances on stored budgets: what they save, what they hold, and what becomes of them."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError

from a2a.errors import Unavailable
from a2a.money import MICRO
from a2a.requests import CancelTask, SendMessage
from a2a.types import Message
from tasks_app.database.bridge import bridge
from tasks_app.database.work import LOCKED
from tasks_app.event_log import ORPHAN_AFTER, CreateAdvanced, CreateSettled, EndAdvance, FindKeyLast, Lend, Reserve
from tasks_app.ids import uuid7
from tasks_app.limits.budgets import Charge
from tasks_app.models import Budget, DrawnCost, Reservation, Task
from tasks_app.operations import Context, dispatcher, perform
from tasks_app.operations import advances as room
from tasks_app.operations.advances import advances
from tasks_app.process import services
from tasks_app.upkeep.orphans import release_orphans
from tests.conftest import PATIENCE, Person, until
from tests.database.locks import lock_row, needs_row_locks, waiting_for_locks
from tests.operations.asking import ask, message
from tests.operations.money import amounts, limit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


@pytest.fixture(autouse=True)
def long_advances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let advances last until the test ends them."""
    monkeypatch.setattr(room, "SECONDS", 2 * PATIENCE)
    advances.forget()


async def _send(person: Person, said: Message) -> Any:
    try:
        return await perform(SendMessage(message=said), Context(caller=person.caller, agent="priced-quick"))
    except Unavailable as error:
        return error


async def _get_advance(person: Person) -> None:
    """Send a message that asks for an advance, and wait for that."""
    async with asyncio.timeout(PATIENCE):
        await _send(person, message("0.25"))
        while not advances.current:  # noqa: ASYNC110  # it comes from the thread of a lane
            await asyncio.sleep(0)


async def _send_all(person: Person, messages: Sequence[Message]) -> list[Any]:
    """Send the messages one after the other, with an advance on which they draw."""
    await _get_advance(person)
    return [await _send(person, said) for said in messages]


def send_all(person: Person, *messages: str | Message) -> list[Any]:
    return async_to_sync(_send_all)(person, [message(said) if isinstance(said, str) else said for said in messages])


def end() -> None:
    """End the advance, and wait until it is given back."""
    advances.forget()
    until(lambda: not Reservation.objects.filter(orphan_at__isnull=False).exists(), "it is given back")


def drawn(budget: Budget) -> float:
    """Return what calls that drew on advances have cost, for which the budget is not charged yet, in dollars."""
    return sum(DrawnCost.objects.filter(budget=budget).values_list("spent", flat=True)) / MICRO


def lend(budget: Budget, least: int = 16 * MICRO) -> int:
    return bridge.do(Lend(charge=Charge(task_id=uuid7(), budgets=(budget.pk,), least=least, most=0)))


@pytest.mark.parametrize("of_tenant", [False, True], ids=["one budget", "with one of the tenant"])
def test_calls_that_draw_on_an_advance_reserve_nothing_themselves(
    owner: Person, monkeypatch: pytest.MonkeyPatch, of_tenant: bool
) -> None:
    budgets = [limit(owner, 1000), *([limit(owner, 2000, tenant=True)] if of_tenant else [])]
    groups: list[type] = []
    for kind in (Reserve, CreateSettled):
        do = kind.do_many.__func__  # type: ignore[attr-defined]
        monkeypatch.setattr(
            kind, "do_many", classmethod(lambda cls, items, do=do: groups.append(cls) or do(cls, items))
        )
    send_all(owner, "0.5", "0.125 reply", "1")
    assert groups == []
    for budget in budgets:
        (row,) = Reservation.objects.filter(budget=budget)
        assert amounts(budget) == (row.amount / MICRO, 0), "no call has changed the budget"
        assert row.amount > 50 * MICRO
        assert drawn(budget) == 1.875, "their costs are stored with their tasks"
    end()
    assert not DrawnCost.objects.exists()
    assert [amounts(budget) for budget in budgets] == [(0, 1.875)] * len(budgets)


@pytest.fixture
def wishes(monkeypatch: pytest.MonkeyPatch) -> "list[Future[int]]":
    """Keep the questions for advances from the database, and collect the futures of their answers."""
    futures, put = list["Future[int]"](), bridge.put

    def keep(item: Any, future: Any = None) -> None:
        if isinstance(item, Lend):
            futures.append(future)
        else:
            put(item, future)

    monkeypatch.setattr(bridge, "put", keep)
    return futures


async def _send_three(
    person: Person, wishes: "list[Future[int]]", answer: "Callable[[Future[int]], None]"
) -> list[bool]:
    """Send three messages at once, and answer the wish of the first. Return whether each had ended before."""
    calls = [asyncio.create_task(_send(person, message("0.5"))) for _ in range(3)]
    while not wishes:  # noqa: ASYNC110  # it is a list
        await asyncio.sleep(0)
    await asyncio.wait(calls, timeout=0.5)
    had_ended = [call.done() for call in calls]
    (wish,) = wishes
    answer(wish)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*calls)
    return had_ended


def test_calls_that_come_while_an_advance_is_asked_for_wait_for_it(owner: Person, wishes: "list[Future[int]]") -> None:
    budget = limit(owner, 1000)
    ended = async_to_sync(_send_three)(owner, wishes, lambda wish: wish.set_result(62 * MICRO))
    assert ended == [False] * 3
    (advance,) = advances.current.values()
    assert advance.left == 59 * MICRO
    assert (drawn(budget), amounts(budget)) == (1.5, (0, 0)), "all three have drawn on it"


@pytest.mark.parametrize("is_away", [False, True], ids=["too little is left", "the database is away"])
def test_calls_without_an_advance_reserve_for_themselves_and_wait_for_no_second_one(
    owner: Person, wishes: "list[Future[int]]", is_away: bool
) -> None:
    budget = limit(owner, 1000)

    def refuse(wish: "Future[int]") -> None:
        if is_away:
            wish.set_exception(OperationalError("the database is away"))
        else:
            wish.set_result(0)

    async def act() -> None:
        assert await _send_three(owner, wishes, refuse) == [False] * 3
        wishes.clear()
        (wish,) = advances.wishes.values()
        wish.since -= PATIENCE  # It is time for the next one.
        assert await _send_three(owner, wishes, lambda wish: None) == [True] * 3

    async_to_sync(act)()
    assert (amounts(budget), drawn(budget)) == ((0, 3), 0)


@pytest.mark.parametrize("of_tenant", [False, True], ids=["one budget", "with one of the tenant"])
def test_a_task_that_waits_for_an_answer_takes_its_reservation_out_of_the_advance(
    owner: Person, of_tenant: bool
) -> None:
    budgets = [limit(owner, 1000), *([limit(owner, 2000, tenant=True)] if of_tenant else [])]
    send_all(owner, "0.5 ask")
    end()
    assert [amounts(budget) for budget in budgets] == [(1, 0.25)] * len(budgets)
    ask(owner, CancelTask(id=Task.objects.get(state="input_required").id))
    assert [amounts(budget) for budget in budgets] == [(0, 0.75)] * len(budgets)
    assert not Reservation.objects.exists()


def test_a_message_that_is_sent_again_draws_once_and_holds_nothing(owner: Person) -> None:
    budget, said = limit(owner, 1000), message("0.5")
    send_all(owner, said, said)
    end()
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 0.75), False)


@pytest.mark.parametrize("is_late", [False, True], ids=["soon", "after a sweep gave the advance back"])
def test_a_call_that_stores_no_task_is_charged_when_its_advance_ends(
    owner: Person, monkeypatch: pytest.MonkeyPatch, hand: Any, is_late: bool
) -> None:
    budget, play = limit(owner, 1000), dispatcher.play_quickly

    async def busy(run: Any, owner_id: int) -> Any:
        if run.text != "fail":
            return await play(run, owner_id)
        run.spend("0.125")
        raise Unavailable(1)

    monkeypatch.setattr("tasks_app.operations.dispatcher.play_quickly", busy)
    assert isinstance(send_all(owner, "fail")[0], Unavailable)
    if is_late:
        # It ended minutes after its beginning, and a sweep has given the advance back.
        next(iter(advances.current.values())).since -= 2 * ORPHAN_AFTER.total_seconds()
        hand.on(minutes=3)
        assert release_orphans() == 1
    end()
    until(lambda: amounts(budget) == (0, 0.375), "it is charged")
    assert not Reservation.objects.exists()


def test_a_budget_lends_a_sixteenth_of_what_is_left_and_nothing_when_less_than_half_is(owner: Person) -> None:
    budget = limit(owner, 1000)
    assert lend(budget) == 1000 * MICRO // 16
    Budget.objects.update(reserved=0, spent=500 * MICRO)
    assert lend(budget) == 500 * MICRO // 16
    Budget.objects.update(reserved=0, spent=500 * MICRO + 1)
    assert lend(budget) == 0
    Budget.objects.update(reserved=0, spent=0, amount=255 * MICRO)
    assert (lend(budget), lend(budget, 15 * MICRO)) == (0, 255 * MICRO // 16)
    budget.delete()
    assert lend(budget) == 0


@needs_row_locks
def test_a_locked_budget_keeps_no_other_from_giving_an_advance(owner: Person, stranger: Person) -> None:
    budgets = [limit(person, 1000) for person in (owner, stranger)]
    wishes = [Lend(charge=Charge(task_id=uuid7(), budgets=(one.pk,), least=1, most=0)) for one in budgets]
    with lock_row("budget", "id", str(budgets[1].pk)):
        assert Lend.do_many(wishes) == [1000 * MICRO // 16, LOCKED]
    assert [amounts(one)[0] for one in budgets] == [62.5, 0]


def test_an_advance_of_a_process_that_died_is_given_back(owner: Person, hand: Any) -> None:
    budget = limit(owner, 1000)
    lend(budget)
    assert (release_orphans(), amounts(budget)) == (0, (62.5, 0))
    hand.on(minutes=3)
    assert (release_orphans(), amounts(budget)) == (1, (0, 0))


def test_calls_that_drew_on_an_advance_of_a_process_that_died_are_charged(owner: Person, hand: Any) -> None:
    budget = limit(owner, 1000)
    send_all(owner, "0.5", "0.125 reply")
    hand.on(minutes=3)
    assert (release_orphans(), amounts(budget)) == (1, (0, 0.875))
    end()
    assert (release_orphans(), amounts(budget), drawn(budget)) == (0, (0, 0.875), 0)


def test_an_advance_is_charged_once_however_often_its_end_is_written(owner: Person) -> None:
    budget = limit(owner, 1000)
    send_all(owner, "0.5")
    (advance,) = advances.current.values()
    charge = Charge(task_id=advance.id, budgets=advance.budgets, least=0, most=0)
    for _ in range(2):
        bridge.do(EndAdvance(charge=charge, spent=125_000))
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 0.875), False)


def test_a_call_that_costs_more_than_its_maximum_is_charged_before_the_end_of_its_advance(owner: Person) -> None:
    budget = limit(owner, 1000)
    send_all(owner, "0.5", "30")
    (row,) = Reservation.objects.all()
    until(lambda: amounts(budget) == (row.amount / MICRO, 30.75), "it is charged, and the advance stays reserved")
    assert not DrawnCost.objects.exists()
    end()
    assert amounts(budget) == (0, 30.75)


def test_calls_that_cost_more_than_their_maximum_use_their_advance_up(owner: Person) -> None:
    budget = limit(owner, 1000)
    send_all(owner, *["30"] * 4)
    (advance,) = advances.current.values()
    lent = Reservation.objects.get().amount
    assert lent - advance.left == 91 * MICRO, "the first has taken its maximum, and the last has reserved for itself"
    end()
    until(lambda: amounts(budget) == (0, 120.25), "all are charged")


def test_a_removed_budget_is_not_charged_for_calls_that_drew_on_an_advance(owner: Person) -> None:
    budget, other = limit(owner, 1000), limit(owner, 2000, tenant=True)
    send_all(owner, "0.5")
    Budget.objects.filter(pk=budget.pk).delete()
    end()
    assert (amounts(other), DrawnCost.objects.exists()) == ((0, 0.75), False)


@pytest.mark.usefixtures("service")
def test_a_process_that_stops_gives_its_advance_back(owner: Person) -> None:
    budget = limit(owner, 1000)
    send_all(owner, "0.5")
    assert amounts(budget)[0] > 50
    services.stop()
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 0.75), False)


def test_a_call_that_ends_after_its_loop_is_charged(owner: Person) -> None:
    """The process stops while the database is away, and finds out only then that the call has stored no task."""
    budget = limit(owner, 1000)
    send_all(owner)
    (advance,) = advances.current.values()
    assert advance.loop.is_closed()
    advance.leave_elsewhere(MICRO)
    until(lambda: amounts(budget)[1] == 1, "its cost is charged")
    end()
    assert amounts(budget) == (0, 1.25), "once, beside that of the call before"


def test_a_call_beyond_its_advance_reserves_for_itself(owner: Person) -> None:
    budget = limit(owner, 300)
    send_all(owner, *["0.5"] * 25)
    assert drawn(budget) < 12, "some have reserved for themselves"
    end()
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 12.75), False)


@needs_row_locks
def test_a_locked_budget_delays_no_call_with_an_advance_but_its_charge(owner: Person) -> None:
    budget = limit(owner, 1000)

    async def act() -> None:
        await _get_advance(owner)
        with lock_row("budget", "id", str(budget.pk)) as release:
            async with asyncio.timeout(PATIENCE):
                await _send(owner, message("0.5"))
                advances.forget()
                while not waiting_for_locks():  # noqa: ASYNC110  # it is known to the database alone
                    await asyncio.sleep(0)
            release()

    async_to_sync(act)()
    end()
    assert (amounts(budget), Task.objects.count()) == ((0, 0.75), 2)


@pytest.mark.parametrize("of_tenant", [False, True], ids=["one budget", "with one of the tenant"])
def test_a_call_whose_advance_was_given_back_meanwhile_is_charged_and_holds_nothing(
    owner: Person, hand: Any, of_tenant: bool
) -> None:
    """Its process was frozen for minutes."""
    budgets = [limit(owner, 1000), *([limit(owner, 2000, tenant=True)] if of_tenant else [])]

    async def freeze() -> None:
        await _get_advance(owner)
        hand.on(minutes=3)
        assert await asyncio.to_thread(release_orphans) == 1
        for text in ("0.5", "0.125 ask"):
            await _send(owner, message(text))

    async_to_sync(freeze)()
    assert release_orphans() == 0
    assert [amounts(budget) for budget in budgets] == [(0, 0.875)] * len(budgets)
    ask(owner, CancelTask(id=Task.objects.get(state="input_required").id))
    end()
    assert [amounts(budget) for budget in budgets] == [(0, 0.875)] * len(budgets)
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(("text", "spent"), [("0.5", 0.75), ("0.125 reply", 0.375)])
def test_a_call_whose_database_goes_away_with_its_commit_is_charged_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch, text: str, spent: float
) -> None:
    budget = limit(owner, 1000)
    store, find = CreateAdvanced.do_many.__func__, FindKeyLast.do_many.__func__  # type: ignore[attr-defined]
    commits, looks = list[Any](), list[Any]()

    def commit(cls: Any, items: Any) -> Any:
        if not commits:
            commits.append(store(cls, items))
        raise OperationalError("the database is away")

    def look(cls: Any, items: Any) -> Any:
        looks.append(items)
        if len(looks) < 4:
            raise OperationalError("the database is away")
        return find(cls, items)

    async def act() -> None:
        await _get_advance(owner)
        monkeypatch.setattr(CreateAdvanced, "do_many", classmethod(commit))
        monkeypatch.setattr(FindKeyLast, "do_many", classmethod(look))
        (advance,) = advances.current.values()
        with pytest.raises(OperationalError):
            await _send(owner, message(text))
        async with asyncio.timeout(PATIENCE):
            while advance.calls:  # noqa: ASYNC110  # the news comes from the thread of a lane
                await asyncio.sleep(0.01)

    async_to_sync(act)()
    end()
    assert (amounts(budget), Reservation.objects.exists()) == ((0, spent), False)
