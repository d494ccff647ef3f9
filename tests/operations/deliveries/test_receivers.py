"""Receivers of deliveries: away, refusing, slow, or asking for time. Each event arrives in order, at least once."""

import threading
from typing import Any

import pytest

from tasks_app.models import Delivery, DeliveryTry, Webhook
from tasks_app.webhooks import readable_body, sending
from tests.conftest import Person
from tests.operations.rows import chunk
from tests.operations.webhooks import (
    DONE,
    NOTHING,
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
from tests.support.servers import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def test_a_receiver_that_is_down_for_hours_gets_everything_in_order(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.default = NOTHING
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"), chunk("two"), DONE)
    for _ in range(60):
        pump()
        hand.on(minutes=6)
    tried = len(there.got)
    # No delivery overtakes the first, and the receiver is not asked all the time.
    assert set(seqs(there)) == {2}
    assert 5 < tried < 15
    assert len({got.headers["webhook-id"] for got in there.got}) == 1
    assert len({got.headers["webhook-timestamp"] for got in there.got}) == tried
    there.default = Reply(200)
    hand.on(hours=6)  # The longest gap so far, with its jitter of a fifth, is below five hours.
    pump()
    assert seqs(there)[tried:] == [2, 3, 4, 5]
    assert states() == [(2, "delivered", tried + 1), (3, "delivered", 1), (4, "delivered", 1), (5, "delivered", 1)]
    assert DeliveryTry.objects.filter(status=503).count() == tried


def test_a_receiver_that_is_not_there_is_tried_again(lanes: None, owner: Person, hand: Hand) -> None:
    task_id = hooked(owner, f"http://127.0.0.1:{free_port()}/")
    happens(task_id, WORKS)
    pump()
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.attempt, delivery.status) == ("waiting", 1, None)
    assert delivery.error == "The connection was refused: nothing listens at this port."


def test_after_three_days_it_is_dead_and_kept_and_the_next_one_goes_on(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.default = NOTHING
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS)
    hand.on(hours=71)
    happens(task_id, chunk("late"))
    pump()
    hand.on(hours=10)
    pump()
    assert states() == [(2, "dead", 2), (3, "waiting", 1)]
    there.default = Reply()
    hand.on(hours=9)
    pump()
    assert states() == [(2, "dead", 2), (3, "delivered", 2)]
    assert "statusUpdate" in readable_body(Delivery.objects.get(seq=2))


@pytest.mark.parametrize("code", [301, 400, 404])
def test_a_refusal_is_final_for_that_delivery_alone(lanes: None, owner: Person, there: Receiver, code: int) -> None:
    there.script = [Reply(code, {"Location": there.url})]
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]
    assert str(code) in Delivery.objects.get(seq=2).error


@pytest.mark.parametrize(
    "place", ["http://xn--zz--/", "http://[", "mailto:a@b", "\x7f", "x" * 60_000, "http://\u00e9/"]
)
def test_an_address_in_an_answer_is_not_read(lanes: None, owner: Person, there: Receiver, place: str) -> None:
    there.script = [Reply(301, {"Location": place})]
    happens(hooked(owner, there.url), WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]
    assert "redirects are not followed" in Delivery.objects.get(seq=2).error


def test_a_try_that_ends_with_an_unknown_error_is_one_that_failed(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise LookupError("canary")

    happens(hooked(owner, there.url), WORKS)
    monkeypatch.setattr(sending, "post", fail)
    pump()
    assert states() == [(2, "waiting", 1)]
    assert "error of this server" in Delivery.objects.get().error
    assert Webhook.objects.get().lease_until is None


def test_gone_disables_the_webhook_until_it_is_registered_again(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(410)]
    task_id = hooked(owner, there.url, id="a")
    happens(task_id, WORKS, chunk("one"))
    pump()
    happens(task_id, chunk("two"))
    pump()
    assert (seqs(there), states()) == ([2], [(2, "dead", 1), (3, "dead", 0)])
    (row,) = Webhook.objects.all()
    assert (row.state, row.due_at, "410" in row.reason) == ("disabled", None, True)
    hook(owner, task_id, there.url, id="a")
    happens(task_id, chunk("three"))
    pump()
    assert seqs(there) == [2, 5]
    assert Webhook.objects.count() == 1


def test_a_receiver_that_asks_for_time_gets_it(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
    there.script = [Reply(429, {"Retry-After": "600"})]
    happens(hooked(owner, there.url), WORKS)
    pump()
    hand.on(seconds=599)
    pump()
    assert len(there.got) == 1
    hand.on(seconds=1)
    pump()
    assert states() == [(2, "delivered", 2)]


def test_the_body_of_a_receivers_answer_is_not_kept(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(500, {"X-Secret": "canary"}, body=b"canary" * 100_000)]
    happens(hooked(owner, there.url), WORKS)
    pump()
    kept = [str(value) for row in (*Delivery.objects.values(), *DeliveryTry.objects.values()) for value in row.values()]
    assert "canary" not in "".join(kept)
    assert states() == [(2, "waiting", 1)]


def test_an_answer_that_never_comes_is_given_up(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.webhooks.posting.TRY_SECONDS", 0.2)
    there.default = Reply(until=threading.Event())
    happens(hooked(owner, there.url), WORKS)
    pump()
    assert states() == [(2, "waiting", 1)]
    assert "No answer within 0.2 s" in Delivery.objects.get().error
