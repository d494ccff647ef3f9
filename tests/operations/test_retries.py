"""Attempts: which exceptions are worth another, the pause before it, and what the task says meanwhile."""

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from a2a.agents import agent
from a2a.failures import Failure, Retry
from a2a.run import Run as Given
from a2a.states import TaskState
from a2a.types import Task as Seen
from tasks_app.event_log import append_many, claim, create_many, run_seq
from tasks_app.hints import alarm
from tasks_app.models import Run, Task
from tasks_app.runner import retries
from tasks_app.runner.retries import Attempt, pause
from tests.conftest import Person, until
from tests.operations.asking import data, sent, text_of
from tests.operations.rows import addition, chunk, creation, status, wish
from tests.support.agents import SECRET

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
service = pytest.mark.usefixtures("service")


class Overloaded(Exception):
    """An exception of a library that the agent uses."""


WHAT: dict[str, Exception] = {
    "retry": Retry("The model is busy."),
    "at-once": Retry("The model is busy.", after=0),
    "later": Retry("The model is busy.", after=3600),
    "connection": ConnectionResetError(SECRET),
    "time": TimeoutError(SECRET),
    "mistake": ValueError(SECRET),
    "failure": Failure("No such city."),
    "library": Overloaded(SECRET),
}


@agent(attempts=3, backoff=0)
async def stumbles(run: Given, what: str, times: int) -> AsyncIterator[Any]:
    """Raises in its first attempts."""
    yield f"attempt {run.attempt}"
    if run.attempt <= times:
        raise WHAT[what]


@agent(attempts=3, backoff=0, retry_on=[Overloaded])
async def stumbles_over_its_library(run: Given, what: str, times: int) -> AsyncIterator[Any]:
    """Does the same, and says which exceptions are worth another attempt."""
    yield f"attempt {run.attempt}"
    if run.attempt <= times:
        raise WHAT[what]


@agent(attempts=2, backoff=3600)
async def patient(run: Given) -> str:
    """Raises, and would be called again in an hour."""
    raise ConnectionError(SECRET)


def tried(owner: Person, what: str, times: int, name: str = "stumbles") -> Seen:
    return sent(owner, data({"what": what, "times": times}), name)


def outcomes() -> list[tuple[int, str]]:
    return list(Run.objects.order_by("fence").values_list("fence", "outcome"))


def sentences(task: Seen) -> list[str]:
    """Return the messages about the task, oldest first."""
    said = [*task.history, *([task.status.message] if task.status.message else [])]
    return [message.text for message in said if message.role == "agent"]


@service
@pytest.mark.parametrize("what", ["retry", "at-once", "connection", "time"])
@pytest.mark.requirement("VAPORA-11")
def test_a_transient_exception_is_worth_another_attempt(owner: Person, what: str) -> None:
    task = tried(owner, what, 2)
    assert (task.status.state, text_of(task)) == ("completed", "attempt 3")
    assert outcomes() == [(1, "failed"), (2, "failed"), (3, "completed")]
    assert Task.objects.values_list("attempt", "not_before").get() == (3, None)
    first, second = sentences(task)
    assert first.startswith("Attempt 1 of 3 failed: ")
    assert first.endswith("; tried again in 0.0 s.")
    assert second.startswith("Attempt 2 of 3 failed: ")
    assert ("The model is busy" in first) is (what in {"retry", "at-once"})
    assert SECRET not in first


@service
@pytest.mark.parametrize("what", ["mistake", "failure", "library"])
def test_any_other_exception_ends_the_task_at_once(owner: Person, what: str) -> None:
    task = tried(owner, what, 1)
    assert task.status.state == "failed"
    assert outcomes() == [(1, "failed")]
    (sentence,) = sentences(task)
    assert sentence == "No such city." if what == "failure" else sentence.startswith("The agent failed. Reference: ")


@service
@pytest.mark.parametrize(("what", "attempt"), [("library", 2), ("connection", 1), ("retry", 2)])
def test_an_agent_says_which_exceptions_are_worth_another_attempt(owner: Person, what: str, attempt: int) -> None:
    tried(owner, what, 1, "stumbles-over-its-library")
    assert Task.objects.get().attempt == attempt


@service
def test_the_last_attempt_says_so(owner: Person) -> None:
    task = tried(owner, "retry", 3)
    assert task.status.state == "failed"
    assert sentences(task)[-1] == "Attempt 3 of 3 failed: The model is busy."
    assert outcomes() == [(1, "failed"), (2, "failed"), (3, "failed")]


@service
def test_between_two_attempts_the_task_pauses_for_its_backoff(owner: Person) -> None:
    sent(owner, "go", "patient", return_immediately=True)
    until(Run.objects.exists, "the first attempt")
    row = Task.objects.get()
    assert (row.state, row.attempt, row.lease_owner) == ("submitted", 1, None)
    assert row.not_before
    assert timedelta(minutes=45) < row.not_before - timezone.now() < timedelta(minutes=75)


def test_a_task_is_not_claimed_before_its_pause_is_over(owner: Person) -> None:
    task_id = create_task(owner)
    claim(wish())
    assert append_many([addition(task_id, status(TaskState.SUBMITTED), fence=1, delay=3600)]) != [None]
    assert claim(wish()) == []
    Task.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    (read,) = claim(wish())
    assert (read.attempt, Task.objects.get().not_before) == (2, None)


def test_a_pause_of_no_time_is_over_at_once(owner: Person) -> None:
    task_id = create_task(owner)
    claim(wish())
    assert append_many([addition(task_id, status(TaskState.SUBMITTED), fence=1, delay=0)]) != [None]
    assert len(claim(wish())) == 1


def test_a_pause_doubles_to_a_limit_and_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def between(tries: int, **more: Any) -> tuple[float, float]:
        attempt, ends = Attempt("t", "c", "an-agent-of-another-release", tries, 100), []
        for chance in (0.0, 1.0):
            monkeypatch.setattr(retries.random, "random", lambda chance=chance: chance)
            ends.append(round(pause(attempt, **more), 3))
        return ends[0], ends[1]

    assert [between(tries) for tries in (1, 2, 3, 100)] == [(0.8, 1.2), (1.6, 2.4), (3.2, 4.8), (240.0, 360.0)]
    assert between(1, after=10) == (10.0, 12.0), "never before what the agent asked for"
    assert between(1, after=1e9) == (86_400.0, 103_680.0)


@pytest.mark.parametrize("after", [-1, float("nan"), Decimal("nan"), float("inf"), "5"])
def test_a_retry_after_no_time_is_refused(after: Any) -> None:
    with pytest.raises(ValueError, match="a number of seconds from 0"):
        Retry(after=after)


# --------------------------------------------------- what a run writes, once


def test_a_write_of_a_run_is_refused_when_it_is_repeated(owner: Person) -> None:
    task_id = create_task(owner)
    (read,) = claim(wish())
    assert read.run_seq == read.document.seq
    item = addition(task_id, chunk("one"), fence=1, after=read.run_seq)
    (first,) = append_many([item])
    assert append_many([item]) == [None]
    assert run_seq(task_id, 1) == first.seq == read.run_seq + 1
    assert run_seq(task_id, 2) is None, "another attempt's"


def test_events_of_others_are_no_writes_of_the_run(owner: Person) -> None:
    task_id = create_task(owner)
    (read,) = claim(wish())
    assert append_many([addition(task_id, chunk("a caller's"))]) != [None]
    assert run_seq(task_id, 1) == read.run_seq
    (mine,) = append_many([addition(task_id, chunk("one"), fence=1, after=read.run_seq)])
    assert run_seq(task_id, 1) == mine.seq == read.run_seq + 2


def create_task(owner: Person) -> str:
    """Return a task that waits for its first attempt."""
    item = creation(owner, "k")
    assert create_many([item]) == [None]
    assert item.task
    return item.task.id


def test_an_alarm_keeps_so_many_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm, "MOST", 3)
    clock = alarm.Alarm(lambda: None)
    for seconds in (3600, 7200, 3601, 3602, 3603):
        clock.set(seconds)
    assert len(clock.due) == 3, "the sweeper offers what is due after the others"
