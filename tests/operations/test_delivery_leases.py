"""Leases: one try at a time for a webhook, a lease that ends, and addresses that change meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from a2a.requests import DeletePushConfig
from tasks_app import clock
from tasks_app.event_log import Remove, remove
from tasks_app.models import Delivery, DeliveryTry, PushConfig, Task
from tasks_app.webhooks import leases, oldest_due, send_again
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import GAPS, JITTER, TryResult
from tasks_app.webhooks.sending import Sender
from tests.conftest import PATIENCE, Person, on_postgres, until
from tests.operations.asking import ask, sent
from tests.operations.rows import chunk, together
from tests.operations.webhooks import (
    DONE,
    NOTHING,
    OPS,
    WORKS,
    Hand,
    config,
    happens,
    hook,
    hooked,
    pump,
    seqs,
    states,
    task,
)
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def test_many_senders_send_nothing_twice_and_a_webhook_has_one_try_at_a_time(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_ids = [hooked(owner, f"{there.url}/{place}") for place in range(6)]
    for task_id in task_ids:
        happens(task_id, WORKS, chunk("one"), chunk("two"), chunk("three"), DONE)
    assert together(4, lambda _: pump()) == [None] * 4
    pump()
    for place in range(6):
        assert [got.seq for got in there.at(f"/{place}")] == [2, 3, 4, 5, 6]
    assert {state for _, state, _ in states()} == {"delivered"}


def test_a_turn_that_was_lost_is_taken_over_and_its_late_end_decides_nothing(
    lanes: None, owner: Person, hand: Hand
) -> None:
    happens(hooked(owner, "http://127.0.0.1:65001/"), WORKS)
    (first,) = leases.take("one", 5, Busy())
    assert leases.take("two", 5, Busy()) == []
    hand.on(seconds=21)
    (second,) = leases.take("two", 5, Busy())
    assert second.delivery == first.delivery
    leases.settle(first, TryResult(status=404), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "waiting", 1)]
    leases.settle(second, TryResult(status=204), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "delivered", 2)]
    assert PushConfig.objects.get().lease_owner is None


@pytest.fixture(params=[-3600, 25, 3600])
def another_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """From now on this is a process on a machine whose clock differs by so many seconds."""
    if not on_postgres():
        pytest.skip("all processes on a SQLite file share a machine")
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
    under_way = remove(Remove(task_id=task_id, config_id="a", now=clock.now()))
    assert under_way
    assert under_way.lasts()
    leases.settle(lease, TryResult(status=204), clock.now(), clock.now(), 0.5)
    assert not under_way.lasts()


@pytest.mark.parametrize("how", ["registered", "with its message", "registered again", "at the end", "sent again"])
def test_what_a_machine_whose_clock_differs_has_written_is_due_at_once(
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


def test_a_try_by_a_machine_whose_clock_differs_is_made_and_the_next_is_due_when_it_should_be(
    lanes: None, owner: Person, there: Receiver, another_machine: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there.script = [NOTHING]
    happens(hooked(owner, there.url), WORKS)
    before = clock.shared()
    another_machine()
    pump()
    monkeypatch.undo()
    assert states() == [(2, "waiting", 1)]
    gap, due = timedelta(seconds=GAPS[0]), PushConfig.objects.get().due_at
    assert due
    assert before + gap * (1 - JITTER) <= due <= clock.shared() + gap * (1 + JITTER)


def test_a_lease_is_as_long_as_it_says_although_the_writers_were_busy(
    lanes: None, owner: Person, hand: Hand, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    happens(hooked(owner, there.url), WORKS)
    due, take, waits, ends = leases.due, leases.take, iter([15]), []

    def slowly(now: Any, busy: Busy) -> Any:
        hand.on(seconds=next(waits, 0))
        return due(now, busy)

    def taken(*arguments: Any) -> Any:
        found = take(*arguments)
        ends.extend(lease.until - clock.now() for lease in found)
        return found

    monkeypatch.setattr(leases, "due", slowly)
    monkeypatch.setattr(leases, "take", taken)
    pump()
    assert ends == [leases.LEASE]


def test_a_try_that_would_outlast_its_lease_is_not_begun(
    lanes: None, owner: Person, hand: Hand, there: Receiver
) -> None:
    happens(hooked(owner, there.url), WORKS)
    (lease,) = leases.take("one", 1, Busy())
    hand.on(seconds=11)
    asyncio.run(Sender()._send(lease))
    assert (there.got, states()) == ([], [(2, "waiting", 0)])
    pump()
    assert states() == [(2, "delivered", 1)]


def superseded(owner: Person, there: Receiver, hand: Hand) -> leases.DeliveryLease:
    """A try at an address that another one has taken the place of since."""
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    happens(task_id, WORKS, chunk("one"))
    (lease,) = leases.take("one", 1, Busy())
    hand.on(seconds=1)
    hook(owner, task_id, there.url, id="a")
    return lease


@pytest.mark.parametrize("code", [410, 404, 503])
def test_what_the_former_address_says_decides_nothing_for_the_new_one(
    lanes: None, owner: Person, there: Receiver, hand: Hand, code: int
) -> None:
    lease = superseded(owner, there, hand)
    pump()
    assert not there.got  # Never two tries at a time for one webhook.
    leases.settle(lease, TryResult(status=code), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "waiting", 1), (3, "waiting", 0)]
    pump()
    assert states() == [(2, "delivered", 2), (3, "delivered", 1)]
    assert DeliveryTry.objects.filter(status=code).count() == 1


def test_what_arrived_at_the_former_address_has_arrived(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    lease = superseded(owner, there, hand)
    leases.settle(lease, TryResult(status=200), clock.now(), clock.now(), 0.5)
    pump()
    assert seqs(there) == [3]
    assert states() == [(2, "delivered", 1), (3, "delivered", 1)]


def test_a_removal_is_answered_when_nothing_is_under_way_any_more(
    service: None, owner: Person, there: Receiver
) -> None:
    gate = threading.Event()
    there.default = Reply(until=gate)
    task_id = hooked(owner, there.url, id="a")
    happens(task_id, WORKS, chunk("one"))
    there.wait(1)
    done = threading.Event()

    def remove() -> None:
        ask(owner, DeletePushConfig(task_id=task_id, id="a"))
        done.set()

    removing = threading.Thread(target=remove, daemon=True)
    removing.start()
    until(lambda: PushConfig.objects.get().state == "removed", "the removal is written")
    assert not done.is_set()
    gate.set()
    assert done.wait(PATIENCE)
    assert len(there.got) == 1
    assert sorted(states()) == [(2, "delivered", 1), (3, "dropped", 0)]
    row = PushConfig.objects.get()
    assert (row.token, row.credentials, row.secret, row.due_at) == ("", "", "", None)


def test_a_webhook_that_is_registered_while_a_removal_waits_is_not_removed(
    service: None, owner: Person, there: Receiver
) -> None:
    gate = threading.Event()
    there.paths["/old"] = Reply(until=gate)
    task_id = hooked(owner, f"{there.url}/old", id="a")
    happens(task_id, WORKS)
    there.wait(1)
    done = threading.Event()

    def remove() -> None:
        ask(owner, DeletePushConfig(task_id=task_id, id="a"))
        done.set()

    threading.Thread(target=remove, daemon=True).start()
    until(lambda: PushConfig.objects.get().state == "removed", "the removal is written")
    hook(owner, task_id, f"{there.url}/new", id="a")
    happens(task_id, chunk("one"))
    assert not done.is_set()
    gate.set()
    assert done.wait(PATIENCE)
    assert PushConfig.objects.get().state == "active"
    assert there.wait(1, "/new")[0].seq == 3


def test_a_removed_webhook_leaves_a_row_only_for_what_was_to_be_delivered(lanes: None, owner: Person) -> None:
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    hook(owner, task_id, "http://127.0.0.1:65001/", id="b")
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    happens(task_id, WORKS)
    ask(owner, DeletePushConfig(task_id=task_id, id="b"))
    ask(owner, DeletePushConfig(task_id=task_id, id="b"))
    assert list(PushConfig.objects.values_list("config_id", "state")) == [("b", "removed")]
    assert not Task.objects.get(pk=task_id).pushes
