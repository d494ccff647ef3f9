"""Webhooks that move or are removed while a try is under way."""

import threading
from datetime import timedelta

import pytest
from django.conf import LazySettings

from a2a.requests import DeletePushConfig
from tasks_app import clock
from tasks_app.models import DeliveryTry, Task, Webhook
from tasks_app.operations import webhooks
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask
from tests.operations.reads import beside_reads
from tests.operations.rows import chunk
from tests.operations.webhooks import (
    WORKS,
    happens,
    hook,
    hooked,
    pump,
    seqs,
    states,
)
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def superseded(owner: Person, there: Receiver, hand: Hand) -> leases.DeliveryLease:
    """Return a try at an address that another one has taken the place of since."""
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    happens(task_id, WORKS, chunk("one"))
    (lease,) = leases.take("one", 1, Busy())
    hand.on(seconds=1)
    hook(owner, task_id, there.url, id="a")
    return lease


@pytest.mark.parametrize("code", [410, 404, 503])
def test_a_failure_at_the_former_address_decides_nothing_for_the_new_one(
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


def test_a_delivery_to_the_former_address_has_arrived(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
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
    until(lambda: Webhook.objects.get().state == "removed", "the removal is written")
    assert not done.is_set()
    gate.set()
    assert done.wait(PATIENCE)
    assert len(there.got) == 1
    assert sorted(states()) == [(2, "delivered", 1), (3, "dropped", 0)]
    row = Webhook.objects.get()
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
    until(lambda: Webhook.objects.get().state == "removed", "the removal is written")
    hook(owner, task_id, f"{there.url}/new", id="a")
    happens(task_id, chunk("one"))
    assert not done.is_set()
    gate.set()
    assert done.wait(PATIENCE)
    assert Webhook.objects.get().state == "active"
    assert there.wait(1, "/new")[0].seq == 3


def test_a_removal_that_is_written_is_answered_whatever_its_caller_reads(
    lanes: None, owner: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "LONGEST_TRY", timedelta(seconds=1))
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    happens(task_id, WORKS)
    assert leases.take("one", 1, Busy())
    wish = DeletePushConfig(task_id=task_id, id="a")
    assert beside_reads(owner, settings, lambda: ask(owner, wish)) is None
    assert Webhook.objects.get().state == "removed"


def test_a_removed_webhook_leaves_a_row_only_for_what_was_to_be_delivered(lanes: None, owner: Person) -> None:
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    hook(owner, task_id, "http://127.0.0.1:65001/", id="b")
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    happens(task_id, WORKS)
    ask(owner, DeletePushConfig(task_id=task_id, id="b"))
    ask(owner, DeletePushConfig(task_id=task_id, id="b"))
    assert list(Webhook.objects.values_list("name", "state")) == [("b", "removed")]
    assert not Task.objects.get(pk=task_id).pushes
