"""Races for one task: one wins, and its events have no gap."""

from typing import Any

import pytest

from a2a.errors import TaskNotCancelable
from a2a.requests import CancelTask
from a2a.states import TERMINAL, TaskState
from tasks_app.database.bridge import bridge
from tasks_app.models import Event, IdempotencyKey, Task
from tasks_app.operations import Context, perform_now
from tests.conftest import Person
from tests.database.rows import create_task
from tests.operations.asking import message, sent
from tests.operations.rows import addition, chunk, status, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def test_eight_threads_number_their_events_without_a_gap(owner: Person) -> None:
    ids = [create_task(owner, f"k{place}") for place in range(3)]

    def work(place: int) -> list[int]:
        return [bridge.do(addition(ids[(place + turn) % 3], chunk(f"{place}.{turn} "))).seq for turn in range(15)]

    results = together(8, work)
    assert all(isinstance(result, list) for result in results), results
    rows = Task.objects.values_list("id", "last_seq")
    assert sum(last - 1 for _, last in rows) == 8 * 15
    for task_id, last in rows:
        assert sorted(Event.objects.filter(task_id=task_id).values_list("seq", flat=True)) == list(range(1, last + 1))


@pytest.mark.parametrize("turn", range(3))
def test_either_the_completion_or_the_cancellation_wins(owner: Person, turn: int) -> None:
    task_id = create_task(owner)

    def work(place: int) -> Any:
        if place % 2:
            return perform_now(CancelTask(id=task_id), Context(caller=owner.caller))
        return bridge.do(change)

    change = addition(task_id, chunk("done"), status(TaskState.COMPLETED))
    results = together(2, work)
    ends = Event.objects.filter(task_id=task_id, state__in=[state.value for state in TERMINAL])
    assert ends.count() == 1
    assert sum(isinstance(result, TaskNotCancelable) or result is None for result in results) == 1


def test_many_cancels_leave_one_event(owner: Person) -> None:
    task_id = create_task(owner)
    results = together(8, lambda _: perform_now(CancelTask(id=task_id), Context(caller=owner.caller)))
    assert sum(isinstance(result, TaskNotCancelable) for result in results) == 7
    assert Event.objects.filter(state="canceled").count() == 1


@pytest.mark.parametrize("agent", ["echo", "form-coroutine"])
def test_sixteen_threads_with_the_same_message_make_one_task(owner: Person, agent: str) -> None:
    said = message("hello", message_id="once")
    results = together(16, lambda _: sent(owner, said, agent, return_immediately=True))
    assert len({task.id for task in results}) == 1, results
    assert (Task.objects.count(), IdempotencyKey.objects.count()) == (1, 1)


def test_sixteen_threads_with_the_same_follow_up_append_it_once(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    said = message("two", task_id=task.id, message_id="once")
    results = together(16, lambda _: sent(owner, said, return_immediately=True))
    assert {getattr(result, "id", result) for result in results} == {task.id}
    assert Event.objects.filter(kind="message").count() == 1
