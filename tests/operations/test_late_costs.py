"""Costs that are reported after the end of a task or of a call, and calls that end while their money moves."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from a2a.agents import agent
from a2a.money import MICRO
from a2a.requests import CancelTask, SendMessage
from a2a.run import Run
from tasks_app.event_log import Create, CreateAdvanced, Reserve
from tasks_app.models import Budget, Reservation, Task
from tasks_app.operations import Context, perform
from tasks_app.operations import advances as room
from tasks_app.operations.advances import advances
from tasks_app.runner import quick
from tasks_app.runner.store import store
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message, sent, words
from tests.operations.money import amounts, limit
from tests.support.agents import MEMORY
from tests.transports.websocket.door import bearer, call, dialled
from tests.transports.websocket.door import message as wire_message
from tests.transports.websocket.serving import in_a_thread, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

begun, may_go_on = threading.Semaphore(0), threading.Event()
"""Each call of a slow agent counts, and all wait until they may go on and report a cost of a dollar."""


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    """Hold the slow agents until the test, or its end, lets them go on."""
    may_go_on.clear()
    while begun.acquire(blocking=False):
        pass
    yield
    may_go_on.set()


def _wait_and_spend(run: Run) -> str:
    begun.release()
    assert may_go_on.wait(PATIENCE)
    run.spend("1")
    return "done"


@agent(cost=("0.50", "1"), quick=True)
def slow_quick(run: Run) -> str:
    """Costs a dollar, and says so when it may go on."""
    return _wait_and_spend(run)


@agent(cost=("0.50", "1"))
def slow_queued(run: Run) -> str:
    """Costs a dollar, and says so when it may go on."""
    return _wait_and_spend(run)


@agent(cost=("0.50", "1"), attempts=4, backoff=0)
async def expensive_attempts(run: Run) -> str:
    """Costs 90 cents with each attempt, of which the fourth succeeds."""
    run.spend("0.9")
    if run.attempt < 4:
        raise ConnectionError("as it was told")
    return "done"


async def wait_for(found: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not found():  # noqa: ASYNC110  # it comes from another thread
            await asyncio.sleep(0.01)


async def cancel_when(person: Person, text: str, agent: str, is_due: Callable[[], Any]) -> None:
    """Send a message, and cancel the call at that moment, as the end of a socket does."""
    sending = asyncio.ensure_future(
        perform(SendMessage(message=message(text)), Context(caller=person.caller, agent=agent))
    )
    await wait_for(is_due)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)


@contextmanager
def holding(monkeypatch: pytest.MonkeyPatch, kind: Any) -> Iterator[threading.Event]:
    """Hold the write of such items until the end of the block. Give the event that tells of its begin."""
    came, goes_on, do = threading.Event(), threading.Event(), kind.do_many.__func__

    def do_many(cls: Any, items: Any) -> Any:
        if cls is kind:
            came.set()
            assert goes_on.wait(PATIENCE)
        return do(cls, items)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "do_many", classmethod(do_many))
        try:
            yield came
        finally:
            goes_on.set()


# ------------------------------------------------------------- late reports


@pytest.mark.usefixtures("service", "prompt_threads")
def test_a_quick_agent_that_reports_beyond_its_time_is_charged(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "LIMIT", 0.05)
    budget = limit(owner, 5)
    tasks = [sent(owner, "hello", "slow-quick") for _ in range(2)]
    assert [task.status.state.value for task in tasks] == ["failed"] * 2
    assert amounts(budget) == (0, 0)
    may_go_on.set()
    until(lambda: amounts(budget) == (0, 2), "both are charged")
    assert {task.spent for task in Task.objects.all()} == {MICRO}


@pytest.mark.usefixtures("service")
def test_a_call_that_ends_before_its_quick_agent_keeps_its_reservation_until_then(owner: Person) -> None:
    budget = limit(owner, 2)

    async def act() -> None:
        for _ in range(2):
            await cancel_when(owner, "hello", "slow-quick", lambda: begun.acquire(blocking=False))

    async_to_sync(act)()
    assert amounts(budget) == (2, 0), "no third call is admitted"
    may_go_on.set()
    until(lambda: amounts(budget) == (0, 2), "both are charged")
    assert not Task.objects.exists()
    assert not Reservation.objects.exists()


@pytest.mark.usefixtures("service")
async def test_a_socket_that_closes_makes_no_run_free(owner: Person) -> None:
    budget = await in_a_thread(lambda: limit(owner, 2))
    async with serving() as server:
        for number in range(2):
            async with dialled(url(server), "/agents/slow-quick/ws", **bearer(owner.key)) as client:
                await client.send(call(number, "SendMessage", {"message": wire_message(f"m{number}")}))
                await wait_for(lambda: begun.acquire(blocking=False))
        may_go_on.set()
        await in_a_thread(lambda: until(lambda: amounts(budget) == (0, 2), "both are charged"))


@pytest.mark.usefixtures("service")
def test_a_run_that_reports_after_its_task_was_canceled_is_charged(owner: Person) -> None:
    budget = limit(owner, 2)
    for _ in range(3):
        task = sent(owner, "hello", "slow-queued", return_immediately=True)
        assert begun.acquire(timeout=PATIENCE)
        ask(owner, CancelTask(id=task.id))
    assert amounts(budget) == (0, 0)
    may_go_on.set()
    until(lambda: amounts(budget) == (0, 3), "all are charged")
    assert {task.spent for task in Task.objects.all()} == {MICRO}


@agent(cost=("0.01", "1"), timeout=1)
async def pays_on(run: Run) -> AsyncIterator[str]:
    """Reports a cost for each word, whatever cancels it."""
    count = 0
    try:
        while True:
            run.spend("0.000001")
            count += 1
            yield "word "
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)
    finally:
        MEMORY[run.task_id] = count


@pytest.mark.usefixtures("service")
def test_a_run_that_is_ended_while_it_reports_is_charged_once(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    async def store_late(*arguments: Any) -> int:
        await asyncio.sleep(0.05)
        return await store(*arguments)

    monkeypatch.setattr("tasks_app.runner.writer.store", store_late)
    limit(owner, 2)
    task = sent(owner, "hello", "pays-on", return_immediately=True)
    until(lambda: task.id in MEMORY, "its generator is closed")
    until(lambda: not Reservation.objects.exists(), "it is settled")
    spent = MEMORY[task.id]
    until(lambda: Budget.objects.get().spent >= spent, "all reports are charged")
    time.sleep(0.2)
    assert (Budget.objects.get().spent, Task.objects.get().spent) == (spent, spent)


# ------------------------------------------------------------------ attempts


@pytest.mark.usefixtures("service")
def test_each_attempt_needs_cover_for_its_maximum(owner: Person) -> None:
    budget = limit(owner, 10)
    for _ in range(3):
        sent(owner, "hello", "expensive-attempts", return_immediately=True)
    until(lambda: not Task.objects.filter(state__in=("submitted", "working")).exists(), "all have ended")
    assert amounts(budget)[0] == 0
    assert amounts(budget)[1] <= 10, "three tasks would have cost 10.80"
    assert Task.objects.filter(state="failed", status__contains="BUDGET_EXCEEDED").exists()


@pytest.mark.usefixtures("service")
def test_without_money_there_is_no_other_attempt(owner: Person) -> None:
    budget = limit(owner, 1)
    task = sent(owner, "hello", "expensive-attempts")
    sentence = (
        "There is no money for another attempt: 0.10 USD are left of the stored budget of the principal, and the agent "
        "costs at least 0.50 USD."
    )
    assert (task.status.state.value, sentence in words(task)) == ("failed", True)
    assert amounts(budget) == (0, 0.9)


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("stored", [True, False])
def test_the_budget_of_a_call_covers_the_minimum_of_each_attempt(owner: Person, *, stored: bool) -> None:
    if stored:
        limit(owner, 10)
    task = sent(owner, "hello", "expensive-attempts", budget=MICRO)
    sentence = "0.10 USD are left of the budget of the task, and the agent costs at least 0.50 USD."
    assert (task.status.state.value, sentence in words(task)) == ("failed", True)
    assert "BUDGET_EXCEEDED" in words(task)
    assert Task.objects.get().spent == 900_000, "there was no second attempt"


@pytest.mark.usefixtures("service")
def test_attempts_that_the_budget_covers_are_all_made(owner: Person) -> None:
    budget = limit(owner, 10)
    task = sent(owner, "hello", "expensive-attempts")
    assert task.status.state.value == "completed"
    assert amounts(budget) == (0, 3.6)


# ------------------------------------------------------ calls that end in doubt


@pytest.mark.usefixtures("service")
def test_a_call_that_ends_while_its_task_is_stored_leaves_the_reservation_to_the_task(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = limit(owner, 5)
    with holding(monkeypatch, Create) as came:
        async_to_sync(cancel_when)(owner, "0.5 ask", "priced-quick", came.is_set)
    until(Task.objects.exists, "the task is stored")
    task = Task.objects.get()
    assert sent(owner, message("1 ask", task_id=task.id)).status.state.value == "input_required"
    assert sent(owner, message("1", task_id=task.id)).status.state.value == "completed"
    assert amounts(budget) == (0, Task.objects.get().spent / MICRO)
    assert amounts(budget)[1] >= 2


@pytest.mark.usefixtures("service")
def test_a_call_that_ends_while_it_reserves_holds_nothing(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = limit(owner, 3)
    with holding(monkeypatch, Reserve) as came:
        async_to_sync(cancel_when)(owner, "0.5", "priced-quick", came.is_set)
    assert sent(owner, "0.5", "priced-quick").status.state.value == "completed"
    until(lambda: amounts(budget)[0] == 0, "the reservation is given back")
    assert not Task.objects.exclude(state="completed").exists()


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize(("text", "reserved", "spent"), [("0.5", 0, 0.75), ("0.5 ask", 1, 0.25)])
def test_a_call_that_ends_while_it_draws_on_an_advance_is_charged_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch, text: str, reserved: float, spent: float
) -> None:
    monkeypatch.setattr(room, "SECONDS", 2 * PATIENCE)
    advances.forget()
    budget = limit(owner, 1000)

    async def act() -> None:
        await perform(SendMessage(message=message("0.25")), Context(caller=owner.caller, agent="priced-quick"))
        await wait_for(lambda: advances.current)
        (advance,) = advances.current.values()
        with holding(monkeypatch, CreateAdvanced) as came:
            await cancel_when(owner, text, "priced-quick", came.is_set)
        await wait_for(lambda: not advance.calls)
        advances.forget()

    async_to_sync(act)()
    until(lambda: not Reservation.objects.filter(orphan_at__isnull=False).exists(), "the advance is given back")
    assert amounts(budget) == (reserved, spent)
