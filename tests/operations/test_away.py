"""A database that is away while agents talk: what they said is written once, and no run fails by it."""

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DataError, InterfaceError, InternalError, OperationalError

from a2a.agents import registry
from a2a.errors import Unavailable
from a2a.requests import GetTask
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Append, Claim, Demand, claim, create_many
from tasks_app.hints import hints
from tasks_app.models import Event, Run, Task
from tasks_app.runner.execution import Execution
from tasks_app.runner.loops import RunLoop
from tasks_app.runner.runner import Runner, runner
from tasks_app.runner.starts import start_together
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message, sent, shown, text_of
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
Perform = Callable[[Sequence[Any]], list[Any]]
Outage = Callable[[Perform, Sequence[Any]], list[Any]]


def before_the_commit(perform: Perform, items: Sequence[Any]) -> list[Any]:
    raise OperationalError("the connection is closed")


def after_the_commit(perform: Perform, items: Sequence[Any]) -> list[Any]:
    perform(items)
    raise OperationalError("the connection is closed")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outage, set[int]], None]:
    """Let those writes of agents that have these numbers meet an outage; all others go well."""

    def meet(outage: Outage, which: set[int]) -> None:
        whole, number = Append.do_many, itertools.count(1)

        def perform(items: Sequence[Any]) -> list[Any]:
            if any(event.actor == "agent" for item in items for event in item.events) and next(number) in which:
                return outage(whole, items)
            return whole(items)

        monkeypatch.setattr(Append, "do_many", perform)

    return meet


@pytest.mark.parametrize("outage", [before_the_commit, after_the_commit])
@pytest.mark.parametrize("which", [{1}, {1, 2, 3}, {2}, {2, 4}], ids=str)
def test_the_words_of_an_agent_are_written_once(owner: Person, away: Any, outage: Outage, which: set[int]) -> None:
    away(outage, which)
    task = sent(owner, "hello", "chatty", return_immediately=True)
    until(lambda: Task.objects.get().state == "completed", "the end")
    assert text_of(shown(ask(owner, GetTask(id=task.id)))) == "".join(f"{number} " for number in range(200))
    assert list(Run.objects.values_list("fence", "outcome")) == [(1, "completed")]
    numbers = list(Event.objects.order_by("seq").values_list("seq", flat=True))
    assert numbers == list(range(1, Task.objects.get().last_seq + 1))


@pytest.mark.parametrize(
    "error", [InterfaceError("closed"), InternalError("read-only"), Unavailable(retry_after=1)], ids=repr
)
def test_whatever_a_database_that_is_away_answers_no_run_fails_by_it(owner: Person, away: Any, error: Any) -> None:
    def refuses(perform: Perform, items: Sequence[Any]) -> list[Any]:
        raise error

    away(refuses, {1, 2})
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    until(lambda: Task.objects.get().state == "completed", "the end")
    assert text_of(shown(ask(owner, GetTask(id=task.id)))) == "hello"


@pytest.mark.parametrize("outage", [before_the_commit, after_the_commit])
def test_a_claim_whose_answer_is_lost_costs_no_attempt(
    owner: Person, monkeypatch: pytest.MonkeyPatch, outage: Outage
) -> None:
    whole, number = Claim.do_many, itertools.count()

    def perform(items: Sequence[Any]) -> list[Any]:
        waiting = Task.objects.filter(state="submitted").exists()
        return outage(whole, items) if waiting and not next(number) else whole(items)

    monkeypatch.setattr(Claim, "do_many", perform)
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    until(lambda: runner.is_claim_doubtful, "the claim is in doubt")
    hints.offer()
    until(lambda: Task.objects.get().state == "completed", "the end")
    assert text_of(shown(ask(owner, GetTask(id=task.id)))) == "hello"
    assert Task.objects.values_list("fence", "attempt").get() == (1, 1)


def test_tasks_of_a_lost_claim_are_begun_though_the_next_claim_fails(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, lost = Claim.do_many, []

    def perform(items: Sequence[Any]) -> list[Any]:
        if not lost and Task.objects.filter(state="submitted").exists():
            lost.append("after the commit")
            return after_the_commit(whole, items)
        if len(lost) == 1:
            lost.append("before the commit")
            return before_the_commit(whole, items)
        return whole(items)

    monkeypatch.setattr(Claim, "do_many", perform)
    sent(owner, "hello", "form-coroutine", return_immediately=True)
    until(lambda: runner.is_claim_doubtful, "the claim is in doubt")
    hints.offer()
    until(lambda: len(lost) == 2, "the next claim has failed")
    until(lambda: Task.objects.get().state == "completed", "the end")
    assert Task.objects.values_list("fence", "attempt").get() == (1, 1)


def test_a_run_whose_write_was_refused_is_not_begun_again_as_a_lost_claim(owner: Person, away: Any) -> None:
    def refuses(perform: Perform, items: Sequence[Any]) -> list[Any]:
        raise DataError("of no use")

    away(refuses, {1})
    task = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: runner.without_end, "the run is given up")
    assert (task.id, 1) in runner.without_end
    until(lambda: task.id not in runner.running, "it has left")
    assert Task.objects.get().lease_owner == runner.worker
    runner.is_claim_doubtful = True
    assert runner.claim_all() == 0


def test_a_runner_that_starts_has_a_name_of_its_own() -> None:
    """Forked children have the memory of their parent, and none of them may take the tasks of another for its own."""
    own, names = Runner(), set()
    for _ in range(2):
        own.start()
        assert own.worker == own.heartbeat.worker
        names.add(own.worker)
        own.stop()
    assert len(names) == 2


@pytest.mark.parametrize("why", ["release", "lose"])
def test_a_run_that_is_stopped_before_its_first_step_calls_nobody(owner: Person, why: str) -> None:
    item = creation(owner, "k", agent="tries-twice")
    assert item.task is not None
    item.task.queue = "apart"  # This process does not claim from that queue.
    create_many([item])
    (read,) = claim(Claim(worker="w", demands=(Demand(agents=("tries-twice",), queues=("apart",), limit=1),)))
    run = Execution(read, registry.get(read.agent), "w", ThreadPoolExecutor(1))
    place, over = RunLoop("apart").start(), threading.Event()
    getattr(run, why)()
    start_together([run], place, lambda _: over.set())
    assert over.wait(PATIENCE)
    place.stop()
    assert not run.was_called
    expected = ("submitted", 0) if why == "release" else ("working", 1)
    assert Task.objects.values_list("state", "attempt").get() == expected


def test_an_agent_not_called_without_the_database_keeps_its_attempt(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, number = DoSlowly.do_many, itertools.count()

    def perform(items: Sequence[Any]) -> list[Any]:
        if any("_conversation" in getattr(item.function, "__qualname__", "") for item in items) and not next(number):
            raise OperationalError("the connection is closed")
        return whole(items)

    monkeypatch.setattr(DoSlowly, "do_many", perform)
    task = sent(owner, message("hello", context_id="c"), "form-coroutine")
    assert (task.status.state, text_of(task)) == ("completed", "hello")
    assert list(Run.objects.order_by("fence").values_list("outcome", flat=True)) == ["released", "completed"]
    assert Task.objects.values_list("fence", "attempt").get() == (2, 1)


def test_an_agent_without_the_database_for_a_lease_is_stopped_and_its_task_says_why(
    owner: Person, away: Any, settings: Any
) -> None:
    settings.A2A_LEASE_SECONDS = 0.5
    away(before_the_commit, set(range(1, 8)))
    sent(owner, "hello", "gate", return_immediately=True)
    until(lambda: Task.objects.get().state == "failed", "the end")
    assert "The database was away for 0.5 s while the agent was at work" in Task.objects.get().status
    assert list(Run.objects.values_list("fence", "outcome")) == [(1, "cut off")]
