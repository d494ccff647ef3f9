"""Machines whose clocks differ: a try under way is left alone, and nothing waits for an hour."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import Remove, remove
from tasks_app.models import Delivery, Webhook
from tasks_app.upkeep.pauses import restart_pauses
from tasks_app.webhooks import leases, oldest_due, send_again
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import GAPS, JITTER, TryResult
from tests.conftest import PATIENCE, Person
from tests.operations.asking import sent
from tests.operations.webhooks import (
    DONE,
    NOTHING,
    OPS,
    WORKS,
    config,
    happens,
    hook,
    hooked,
    pump,
    states,
    task,
)
from tests.support.hand import Hand
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


@pytest.fixture(params=[-3600, 25, 3600])
def another_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Return a function that moves this process to a machine whose clock differs by so many seconds."""
    if not on_postgres():
        pytest.skip("processes that share a SQLite file share the clock of one machine")
    now = clock.now

    def moved() -> None:
        monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=request.param))

    return moved


def test_a_sender_whose_clock_differs_leaves_a_try_under_way_alone(
    lanes: None, owner: Person, there: Receiver, another_machine: Callable[[], None]
) -> None:
    task_id = hooked(owner, there.url, id="a")
    happens(task_id, WORKS)
    (lease,) = leases.take("one", 5, Busy())
    another_machine()
    assert leases.take("two", 5, Busy()) == []
    under_way = remove(Remove(task_id=task_id, name="a", now=clock.now()))
    assert under_way
    assert under_way.lasts()
    leases.settle(lease, TryResult(status=204), clock.now(), clock.now(), 0.5)
    assert not under_way.lasts()


@pytest.mark.parametrize("how", ["registered", "with its message", "registered again", "at the end", "sent again"])
def test_a_delivery_from_a_machine_whose_clock_differs_is_due_at_once(
    lanes: None,
    owner: Person,
    there: Receiver,
    another_machine: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    another_machine()
    if how == "with its message":
        sent(owner, "hello", "echo", push_config=config(there.url))
    else:
        task_id = task(owner)
        if how == "at the end":
            happens(task_id, DONE)
        hook(owner, task_id, there.url, id="a")
        if how != "at the end":
            happens(task_id, WORKS)
        if how == "registered again":
            hook(owner, task_id, f"{there.url}/again", id="a")
        if how == "sent again":
            send_again([Delivery.objects.get().pk], OPS)
    monkeypatch.undo()
    assert oldest_due(timedelta(seconds=PATIENCE)) is None
    pump()
    assert {state for _, state, _ in states()} == {"delivered"}


def test_a_try_by_a_machine_whose_clock_differs_is_made_and_the_next_is_due_in_time(
    lanes: None, owner: Person, there: Receiver, another_machine: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there.script = [NOTHING]
    happens(hooked(owner, there.url), WORKS)
    before = clock.shared()
    another_machine()
    pump()
    monkeypatch.undo()
    assert states() == [(2, "waiting", 1)]
    gap, due = timedelta(seconds=GAPS[0]), Webhook.objects.get().due_at
    assert due
    assert before + gap * (1 - JITTER) <= due <= clock.shared() + gap * (1 + JITTER)


def test_no_delivery_waits_longer_because_the_clock_was_set_back(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.script = [NOTHING]
    failing, new = (hooked(owner, f"{there.url}/{name}") for name in ("failing", "new"))
    happens(failing, WORKS)
    pump()
    happens(new, WORKS)
    hand.on(days=-1)
    assert [restart_pauses(), restart_pauses()] == [2, 0]
    pump()
    assert sorted(state for _, state, _ in states()) == ["delivered", "waiting"]
    hand.on(seconds=GAPS[0] * (1 + JITTER))
    pump()
    assert [state for _, state, _ in states()] == ["delivered"] * 2
