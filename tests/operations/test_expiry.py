"""A task that waits for too long, for a worker or for an answer, ends with a reason."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.event_log import Append, append_many, claim, create_many
from tasks_app.models import Event, Task
from tasks_app.upkeep import expiry
from tasks_app.upkeep.expiry import expire
from tests.conftest import Person
from tests.operations.rows import addition, creation, status, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
Later = Callable[[float], int]


@pytest.fixture
def expire_after(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Return a sweep of what waits, so many hours from now."""

    def later(hours: float) -> int:
        now = timezone.now() + timedelta(hours=hours)
        monkeypatch.setattr(clock, "shared", lambda: now)
        return expire()

    return later


def submitted(owner: Person, key: str = "k", agent: str = "gone") -> str:
    item = creation(owner, key, agent=agent)
    create_many([item])
    assert item.task
    return item.task.id


def test_a_task_whose_agent_is_gone_fails_and_names_it(owner: Person, settings: Any, expire_after: Later) -> None:
    settings.A2A_QUEUE_HOURS = 24
    task_id = submitted(owner)
    assert [expire_after(hours) for hours in (23, 25, 25)] == [0, 1, 0]
    row = Task.objects.get(pk=task_id)
    assert row.state == "failed"
    assert "No worker has begun this task within 24 hours. Its agent is gone, its queue default" in row.status
    assert Event.objects.filter(task_id=task_id).latest("seq").actor == "sweeper"


def test_a_task_that_pauses_between_two_attempts_waits_for_no_worker(
    owner: Person, settings: Any, expire_after: Later
) -> None:
    settings.A2A_QUEUE_HOURS = 24
    Task.objects.filter(pk=submitted(owner)).update(not_before=timezone.now() + timedelta(hours=20))
    assert [expire_after(hours) for hours in (25, 43, 45)] == [0, 0, 1]


def test_a_task_at_work_does_not_wait(owner: Person, settings: Any, expire_after: Later) -> None:
    settings.A2A_QUEUE_HOURS = 24
    submitted(owner, agent="tries-twice")
    assert claim(wish())
    assert expire_after(99) == 0


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_a_question_without_an_answer_is_canceled(
    owner: Person, settings: Any, state: TaskState, expire_after: Later
) -> None:
    settings.A2A_ANSWER_DAYS = 30
    submitted(owner, agent="tries-twice")
    (read,) = claim(wish())
    append_many([addition(read.document.id, status(state, "Well?"), fence=read.fence)])
    assert expire_after(29 * 24) == 0
    assert expire_after(31 * 24) == 1
    row = Task.objects.get()
    assert row.state == "canceled"
    assert "no answer came within 30 days" in row.status


def test_one_that_is_answered_at_that_moment_goes_on(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, expire_after: Later
) -> None:
    settings.A2A_QUEUE_HOURS = 24
    submitted(owner, agent="tries-twice")
    found = expiry._end_overdue

    def found_too_late(now: datetime) -> list[Append]:
        items = found(now)
        assert claim(wish())
        return items

    monkeypatch.setattr(expiry, "_end_overdue", found_too_late)
    assert expire_after(25) == 0
    assert Task.objects.get().state == "working"


def asked(owner: Person, key: str) -> str:
    """Return the id of a task whose agent has asked."""
    task_id = submitted(owner, key, agent="tries-twice")
    (read,) = claim(wish())
    append_many([addition(read.document.id, status(TaskState.INPUT_REQUIRED, "Well?"), fence=read.fence)])
    return task_id


@pytest.mark.parametrize(("begin", "over"), [(submitted, "failed"), (asked, "canceled")], ids=["waiting", "asked"])
def test_owners_with_overdue_tasks_take_turns(
    owner: Person,
    colleague: Person,
    stranger: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    expire_after: Later,
    begin: Callable[[Person, str], str],
    over: str,
) -> None:
    settings.A2A_QUEUE_HOURS, settings.A2A_ANSWER_DAYS = 24, 30
    monkeypatch.setattr(expiry, "BATCH", 4)
    for who, number in ((owner, 9), (colleague, 2), (stranger, 2)):
        for place in range(number):
            begin(who, f"k{place}")

    def ended() -> list[int]:
        people = (owner, colleague, stranger)
        return [Task.objects.filter(owner_id=who.caller.owner_id, state=over).count() for who in people]

    assert expire_after(31 * 24) == 4
    assert ended()[1:] == [1, 1]
    assert expire_after(31 * 24) == 4
    assert (ended(), expire_after(31 * 24), ended()) == ([4, 2, 2], 4, [8, 2, 2])


@pytest.mark.parametrize("page", [2, 1_000])
def test_owners_beyond_one_sweep_have_their_turn_in_the_next(
    owner: Person,
    colleague: Person,
    stranger: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    expire_after: Later,
    page: int,
) -> None:
    settings.A2A_QUEUE_HOURS = 24
    monkeypatch.setattr(expiry, "BATCH", 2)
    monkeypatch.setattr(expiry, "OWNERS", page)
    monkeypatch.setattr(expiry, "turns_of_workers", expiry.Turns())
    people = (owner, colleague, stranger)
    for who in people:
        for place in range(3):
            submitted(who, f"k{place}")
    assert [expire_after(25) for _ in range(3)] == [2, 2, 2]
    ended = [Task.objects.filter(owner_id=who.caller.owner_id, state="failed").count() for who in people]
    assert ended == [2, 2, 2]


def test_nothing_expires_where_the_settings_are_zero(owner: Person, settings: Any, expire_after: Later) -> None:
    settings.A2A_QUEUE_HOURS = settings.A2A_ANSWER_DAYS = 0
    submitted(owner)
    assert expire_after(99_999) == 0
