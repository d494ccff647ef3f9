"""Sweeps that come late, where leases are renewed before any of them is judged, and tasks with a damaged log."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tasks_app import clock
from tasks_app.event_log import claim, create_many
from tasks_app.models import Task
from tasks_app.upkeep import leases, sweeps
from tasks_app.upkeep.expiry import expire
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.pauses import restart_pauses
from tasks_app.upkeep.sweeps import Sweeper
from tests.conftest import Person
from tests.operations.rows import LONG_AGO, creation, damaged, wish

LATE = 121.0
"""On the clock of these tests, whose last sweep was at 100: later than a sweep and a third of a lease."""


class Clock:
    """A monotonic clock that stands still until it is set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch, settings: Any) -> tuple[Sweeper, Clock, list[str]]:
    """Return a sweeper with the usual times that swept at 100, its clock, and what it does with leases."""
    settings.A2A_LEASE_SECONDS, settings.A2A_SWEEP_SECONDS = 30, 5
    time, done, found = Clock(100.0), [], Sweeper()
    monkeypatch.setattr(sweeps, "time", time)
    monkeypatch.setattr(sweeps, "reclaim_tasks", lambda renew: done.append("judged"))
    for name in ("process_row", "hints", "limits", "recorder", "restart_pauses"):
        monkeypatch.setattr(sweeps, name, Mock())
    monkeypatch.setattr(sweeps, "clock_doubts", lambda: ["nothing is deleted here"])
    found.renew = lambda: done.append("renewed")
    found.last = 100.0
    return found, time, done


def sweep_at(moment: float, swept: tuple[Sweeper, Clock, list[str]]) -> list[str]:
    found, time, done = swept
    time.now = moment
    done.clear()
    found.run_round()
    return list(done)


def test_a_sweep_in_time_judges(swept: Any) -> None:
    assert sweep_at(106, swept) == ["judged"]


def test_a_sweep_that_comes_late_renews_and_judges_a_third_of_a_lease_later(swept: Any) -> None:
    assert sweep_at(LATE, swept) == ["renewed"]
    assert sweep_at(LATE + 5, swept) == ["renewed"]
    assert sweep_at(LATE + 10, swept) == ["judged"]


def test_sweeps_that_are_always_late_judge_all_the_same(swept: Any) -> None:
    done = [sweep_at(LATE + 20 * place, swept) for place in range(6)]
    assert done == [["renewed"], ["judged"]] * 3


def test_a_clock_that_is_set_forward_makes_leases_wait(swept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sweep_at(105, swept) == ["judged"]
    monkeypatch.setattr(clock.anchor, "shift", clock.anchor.shift + 60_000_000_000)
    assert [sweep_at(moment, swept) for moment in (110, 115, 120)] == [["renewed"], ["renewed"], ["judged"]]
    monkeypatch.setattr(clock.anchor, "shift", clock.anchor.shift - 60_000_000_000)
    assert sweep_at(125, swept) == ["judged"]


def test_pauses_begin_again_at_the_first_sweep_and_when_the_clock_is_set_back(
    swept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for moment, step in ((105, 0), (110, 0), (115, -120), (120, 120)):
        monkeypatch.setattr(clock.anchor, "shift", clock.anchor.shift + step * 1_000_000_000)
        sweep_at(moment, swept)
        counts.append(sweeps.restart_pauses.call_count)  # type: ignore[attr-defined]
    assert counts == [1, 1, 2, 2]


@pytest.mark.storage
@pytest.mark.usefixtures("lanes")
@pytest.mark.django_db(transaction=True)
def test_a_pause_that_began_in_the_future_begins_again(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    create_many([creation(owner, "k")])
    task, pause = Task.objects.get(), timedelta(seconds=20)
    Task.objects.update(not_before=task.status_at + pause)
    assert restart_pauses() == 0
    now = task.status_at - timedelta(days=1)
    monkeypatch.setattr(clock, "shared", lambda: now)
    assert [restart_pauses(), restart_pauses()] == [1, 0]
    assert Task.objects.get().not_before == now + pause


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_a_clock_that_is_set_within_a_sweep_is_no_reason_to_judge(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_many([creation(owner, "k")])
    claim(wish())
    with monkeypatch.context() as patch:
        patch.setattr(clock, "shared", lambda: clock.now() + timedelta(days=1))
        assert reclaim_tasks() == 0
    assert Task.objects.get().state == "working"


@pytest.mark.storage
@pytest.mark.usefixtures("lanes")
@pytest.mark.django_db(transaction=True)
def test_a_database_that_hung_is_no_reason_to_judge(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    create_many([creation(owner, "k")])
    claim(wish())
    Task.objects.update(lease_until=LONG_AGO)
    moments = iter([0.0, 40.0, 40.0])
    with monkeypatch.context() as patch:
        patch.setattr(leases, "time", SimpleNamespace(monotonic=lambda: next(moments)))
        assert reclaim_tasks() == 0
    assert reclaim_tasks() == 1


@pytest.mark.storage
@pytest.mark.usefixtures("lanes")
@pytest.mark.django_db(transaction=True)
def test_a_damaged_task_keeps_no_other_lease_from_being_judged(owner: Person) -> None:
    items = [creation(owner, key) for key in "ab"]
    create_many(items)
    claim(wish())
    first, second = sorted(item.task.id for item in items if item.task)
    Task.objects.filter(pk=first).update(lease_until=LONG_AGO)
    Task.objects.filter(pk=second).update(lease_until=LONG_AGO + timedelta(seconds=1))
    with damaged(first):
        assert reclaim_tasks() == 1
    assert Task.objects.get(pk=first).state == "working"
    assert Task.objects.get(pk=second).state == "submitted"


@pytest.mark.storage
@pytest.mark.usefixtures("lanes")
@pytest.mark.django_db(transaction=True)
def test_a_damaged_task_keeps_no_other_from_its_end(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_QUEUE_HOURS = 24
    items = [creation(owner, key) for key in "ab"]
    create_many(items)
    first, second = [item.task.id for item in items if item.task]
    now = clock.now() + timedelta(hours=25)
    monkeypatch.setattr(clock, "shared", lambda: now)
    with damaged(first):
        assert expire() == 1
    assert Task.objects.get(pk=first).state == "submitted"
    assert Task.objects.get(pk=second).state == "failed"
