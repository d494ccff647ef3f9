"""The cost of webhooks for the writers."""

from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database import prepared as prepared_ones
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import HAS_WEBHOOKS, Append, Appended
from tasks_app.models import Delivery, Webhook
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import Person
from tests.operations.rows import addition, chunk, creation, status
from tests.operations.webhooks import DONE, WORKS, happens, hooked, pump, seqs, states, task
from tests.support.lanes import inline_lanes
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def statements(work: Any) -> int:
    """Count the statements that the write lane needs."""
    with inline_lanes(), CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


def test_a_task_without_webhooks_pays_nothing(lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> Any:
        return connection.cursor()

    # Django counts no prepared statements. One statement a second discards plans, and must not count.
    monkeypatch.setattr(prepared_ones, "_cursor", seen)
    monkeypatch.setattr(prepared_ones, "_keep_plans_fresh", lambda: None)
    item = addition(task(owner), WORKS)
    # SQLite: begin, update, insert, commit.
    assert statements(lambda: bridge.do(item)) == (1 if on_postgres() else 4)


def test_in_a_group_tasks_with_and_without_webhooks_get_their_own(lanes: None, owner: Person, there: Receiver) -> None:
    plain, with_one = task(owner), hooked(owner, there.url)
    items = [addition(plain, WORKS), addition(with_one, WORKS)]
    first, second = do_group(Append, items)
    assert isinstance(first, Appended)
    assert isinstance(second, Appended) if not on_postgres() else second is HAS_WEBHOOKS
    if on_postgres():
        items = [addition(plain, chunk("x")), items[1]]
        assert [type(result) for result in do_group(Append, items)] == [Appended, Appended]
    pump()
    assert seqs(there) == [2]


def test_an_item_that_is_tried_again_in_a_smaller_group_keeps_its_numbers(lanes: None, owner: Person) -> None:
    one, other = task(owner), task(owner)
    taken = creation(owner, "taken")
    bridge.do(taken)
    wrong = addition(other, WORKS, key=taken.key)
    first, second = do_group(Append, [addition(one, WORKS), wrong])
    assert isinstance(first, Appended)
    assert isinstance(second, IntegrityError)
    # The replay of all logs after each test finds no gap.


def test_an_event_that_cannot_be_told_happens_even_so(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = hooked(owner, there.url, "0.3")

    def broken(*_: Any) -> Any:
        raise LookupError

    monkeypatch.setattr("tasks_app.event_log.bodies._task_as_of", broken)
    happens(task_id, WORKS)
    pump()
    monkeypatch.undo()
    happens(task_id, DONE)
    pump()
    assert seqs(there) == [3]
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]
    assert "the log of the process" in Delivery.objects.get(seq=2).error


@pytest.mark.parametrize("version", ["0.3", "1.0"])
def test_the_end_of_a_try_costs_the_same_however_much_waits(lanes: None, owner: Person, version: str) -> None:
    def settled(number: int) -> int:
        task_id = hooked(owner, "http://127.0.0.1:65001/", version)
        happens(task_id, *(status(TaskState.WORKING) for _ in range(number)))
        (lease,) = leases.take("w", 1, Busy())
        result, now = TryResult(status=204, size=100), clock.now()
        needed = statements(lambda: leases.settle(lease, result, now, now, 0.5))
        Webhook.objects.update(due_at=None)
        return needed

    assert settled(2) == settled(20)
