"""Budgets whose rows another transaction has locked."""

import threading
from typing import Any

import pytest
from django.db import OperationalError, transaction

from a2a.requests import CancelTask
from tasks_app.database.prepared import prepared
from tasks_app.database.sessions import LOCK_WAIT
from tasks_app.database.work import LOCKED
from tasks_app.event_log import Reserve
from tasks_app.ids import uuid7
from tasks_app.limits import lock_waits as waits
from tasks_app.limits.budgets import Charge, balances
from tasks_app.limits.lock_waits import lock_waits
from tasks_app.models import Budget
from tests.conftest import PATIENCE, Person
from tests.database.locks import lock_row, needs_row_locks
from tests.operations.asking import ask
from tests.operations.money import amounts, ask_quickly, limit, queued

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, needs_row_locks]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the time in seconds of the clock of lock waits, which a test may change."""
    now = [1000.0]
    monkeypatch.setattr(waits, "monotonic", lambda: now[0])
    monkeypatch.setattr(lock_waits, "short_until", 0.0)
    return now


def longest_wait() -> str:
    """Return the longest wait for a lock that a transaction of this process allows."""
    with prepared() as cursor, transaction.atomic(), lock_waits.limited(cursor):
        cursor.execute("show lock_timeout")
        return str(cursor.fetchone()[0])


def reservation_of(budget: Budget) -> Reserve:
    return Reserve(charge=Charge(task_id=uuid7(), budgets=(budget.pk,), least=1, most=1))


@pytest.mark.usefixtures("lanes")
def test_a_budget_locked_elsewhere_delays_only_the_tasks_that_need_it(owner: Person, stranger: Person) -> None:
    mine, other = limit(owner, 10), limit(stranger, 10)
    first, done = queued(owner), []
    acts = (lambda: queued(owner), lambda: ask_quickly(owner, "1"), lambda: ask(owner, CancelTask(id=first)))
    with lock_row("budget", "id", str(mine.pk)) as release:
        late = [threading.Thread(target=lambda act=act: done.append(act())) for act in acts]
        for thread in late:
            thread.start()
        for _ in range(5):
            assert queued(stranger)
            ask_quickly(stranger, "1")
            assert queued(owner, agent="form-coroutine")
        assert not done
        release()
        for thread in late:
            thread.join(PATIENCE)
    assert (len(done), amounts(mine), amounts(other)) == (3, (1, 1), (5, 5))


def test_a_wait_in_vain_makes_the_waits_of_the_next_second_short(owner: Person, clock: list[float]) -> None:
    budget = limit(owner, 10)
    reserve = reservation_of(budget)
    assert longest_wait() == LOCK_WAIT
    with lock_row("budget", "id", str(budget.pk)):
        assert Reserve.do_many([reserve]) == [LOCKED]
        assert longest_wait() == waits.SHORT
        clock[0] += waits.SHORT_SECONDS * 0.9
        assert Reserve.do_many([reserve]) == [LOCKED]
    clock[0] += waits.SHORT_SECONDS * 0.2
    assert longest_wait() == LOCK_WAIT


def _lock_slowly(cursor: Any, budget: int, clock: list[float]) -> None:
    with transaction.atomic(), lock_waits.limited(cursor):
        clock[0] += waits.SHORT_SECONDS * 0.002
        balances(cursor, [budget])


def test_a_short_wait_in_vain_does_not_prolong_itself(owner: Person, clock: list[float]) -> None:
    """Even if it began before the end of that second and was refused after it."""
    budget = limit(owner, 10)
    reserve = reservation_of(budget)
    with lock_row("budget", "id", str(budget.pk)):
        assert Reserve.do_many([reserve]) == [LOCKED]
        clock[0] += waits.SHORT_SECONDS * 0.999
        with pytest.raises(OperationalError), prepared() as cursor:
            _lock_slowly(cursor, budget.pk, clock)
    assert longest_wait() == LOCK_WAIT
