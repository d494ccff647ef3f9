"""Webhooks that were registered anew in another language, while deliveries in the former one wait."""

from datetime import timedelta

import pytest

from a2a.requests import CancelTask
from tasks_app import clock
from tasks_app.models import Delivery, Webhook
from tasks_app.webhooks import leases, send_again
from tasks_app.webhooks.limits import Busy
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.webhooks import OPS, hooked
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]
ELSEWHERE = {"version": "", "language": "spoken elsewhere"}
"""The columns of a language that this process does not speak."""


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_delivery_in_an_unspoken_language_holds_up_no_webhook(
    lanes: None, owner: Person, hand: Hand, version: str
) -> None:
    ids = [hooked(owner, "http://127.0.0.1:65001/", version) for _ in range(2)]
    for task_id in ids:
        ask(owner, CancelTask(id=task_id))
    waiting = Delivery.objects.filter(task_id=ids[0])
    waiting.update(**ELSEWHERE)
    assert [lease.task_id for lease in leases.take("here", 5, Busy())] == [ids[1]]
    webhook = Webhook.objects.get(task_id=ids[0])
    assert (webhook.lease_owner, webhook.due_at) == (None, clock.shared() + leases.UNSPOKEN)
    assert webhook.reason == leases.UNSPOKEN_REASON
    # A process that speaks the language takes the delivery after the pause.
    waiting.update(version=version, language=None)
    hand.on(seconds=leases.UNSPOKEN / timedelta(seconds=1))
    assert [lease.task_id for lease in leases.take("elsewhere", 5, Busy())] == [ids[0]]


def test_deliveries_of_a_webhook_in_an_unspoken_language_are_sent_again(lanes: None, owner: Person, hand: Hand) -> None:
    task_id = hooked(owner, "http://127.0.0.1:65001/")
    ask(owner, CancelTask(id=task_id))
    delivery = Delivery.objects.get()
    Delivery.objects.update(state="dead", **ELSEWHERE)
    Webhook.objects.update(due_at=None, **ELSEWHERE)
    assert not send_again([delivery.pk], OPS)[delivery.pk].refusal
    assert Webhook.objects.get().due_at == clock.shared()
