"""The acts of operators on deliveries, and the end of old ones."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from a2a.requests import DeletePushConfig
from tasks_app.ids import uuid7_at
from tasks_app.models import Delivery, DeliveryTry, DirectReply, File, Task, Webhook
from tasks_app.operators.refusals import ActRefused
from tasks_app.process.health import find_lags
from tasks_app.upkeep import deletion
from tasks_app.webhooks import disable, enable, give_up, oldest_due, send_again
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.rows import LONG_AGO, chunk, forget
from tests.operations.webhooks import DONE, NOTHING, OPS, WORKS, happens, hook, hooked, pump, states, task
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


def test_operators_send_again_and_give_up(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
    there.script = [Reply(404), NOTHING]
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "waiting", 1)]
    dead, waiting = Delivery.objects.order_by("seq")
    send_again([dead.pk], OPS)
    give_up(waiting.pk, OPS)
    with pytest.raises(ActRefused):
        give_up(waiting.pk, OPS)
    assert send_again(["nothing"], OPS)["nothing"].refusal
    pump()
    assert states() == [(2, "delivered", 2), (3, "dead", 1)]
    (row,) = Webhook.objects.all()
    disable(row.pk, OPS)
    assert send_again([waiting.pk], OPS)[waiting.pk].refusal
    enable(row.pk, OPS)
    send_again([waiting.pk], OPS)
    pump()
    assert states() == [(2, "delivered", 2), (3, "delivered", 2)]


def test_to_give_up_one_that_waits_behind_another_makes_that_one_no_earlier(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.script = [NOTHING]
    happens(hooked(owner, there.url), WORKS, chunk("one"))
    pump()
    head, behind = Delivery.objects.order_by("seq")
    due_at = Webhook.objects.get().due_at
    give_up(behind.pk, OPS)
    assert Webhook.objects.get().due_at == due_at
    give_up(head.pk, OPS)
    assert Webhook.objects.get().due_at is None
    pump()
    assert states() == [(2, "dead", 1), (3, "dead", 0)]


@pytest.mark.parametrize("act", ["give up", "disable"])
def test_a_delivery_stays_delivered_when_an_operator_stops_sending_it_again(
    lanes: None, owner: Person, there: Receiver, hand: Hand, act: str
) -> None:
    there.script = [Reply(204), NOTHING, NOTHING]
    happens(hooked(owner, there.url), WORKS, chunk("one"))
    pump()
    assert states() == [(2, "delivered", 1), (3, "waiting", 1)]
    first, second = Delivery.objects.order_by("seq").values_list("pk", flat=True)
    send_again([first], OPS)
    hand.on(minutes=1)
    pump()
    assert states() == [(2, "waiting", 2), (3, "waiting", 1)], "the second time it failed"
    if act == "give up":
        give_up(first, OPS)
        give_up(second, OPS)
    else:
        disable(Webhook.objects.get().pk, OPS)
    assert states() == [(2, "delivered", 2), (3, "dead", 1)]
    assert not Delivery.objects.filter(done_at=None).exists()


def test_overdue_deliveries_are_a_lag(lanes: None, owner: Person, hand: Hand) -> None:
    happens(hooked(owner, "http://127.0.0.1:65001/"), WORKS)
    assert oldest_due(timedelta(seconds=60)) is None
    hand.on(seconds=61)
    assert oldest_due(timedelta(seconds=60)) is not None
    (sentence,) = async_to_sync(find_lags)()
    assert "61 s" in sentence


def test_a_task_is_not_forgotten_while_a_delivery_waits(
    lanes: None, owner: Person, there: Receiver, hand: Hand, settings: Any
) -> None:
    task_id = task(owner, id=uuid7_at(LONG_AGO))
    hook(owner, task_id, there.url)
    happens(task_id, WORKS, DONE)
    Task.objects.filter(pk=task_id).update(status_at=LONG_AGO)
    forget()
    assert Task.objects.count() == 1
    pump()
    forget()
    assert [model.objects.count() for model in (Task, Webhook, Delivery, DeliveryTry)] == [0, 0, 0, 0]


def test_files_of_a_direct_reply_go_with_it_while_deliveries_are_forgotten(
    lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "FIRST_ROWS", 2)
    task_id = hooked(owner, "http://127.0.0.1:65001/")
    (webhook,) = Webhook.objects.all()
    reply = DirectReply.objects.create(
        id=uuid7_at(LONG_AGO),
        owner_id=owner.caller.owner_id,
        context_id="c",
        message="{}",
        reply="{}",
        created_at=LONG_AGO,
    )
    File.objects.create(id="f", holder=reply.pk, name="f", media_type="a/b", size=1, digest="", created_at=LONG_AGO)
    for seq in range(2):
        Delivery.objects.create(
            id=uuid7_at(LONG_AGO)[:-1] + str(seq),
            webhook=webhook,
            task_id=task_id,
            seq=seq,
            version="1.0",
            body="{}",
            state="delivered",
            created_at=LONG_AGO,
        )
    forget()
    assert not Delivery.objects.exists()
    assert not DirectReply.objects.exists()
    assert File.objects.get().holder == ""


@pytest.mark.parametrize("status", [404, 410])
def test_a_delivery_stays_delivered_when_it_is_refused_the_second_time(
    lanes: None, owner: Person, there: Receiver, hand: Hand, status: int
) -> None:
    there.script = [Reply(204), Reply(status)]
    happens(hooked(owner, there.url), WORKS)
    pump()
    send_again([Delivery.objects.get().pk], OPS)
    pump()
    assert states() == [(2, "delivered", 2)]
    assert Webhook.objects.get().state == ("disabled" if status == 410 else "active")


@pytest.mark.parametrize("how", ["removed", "disabled", "moved"])
def test_the_end_is_told_again_to_whoever_takes_the_place_of_a_webhook(
    lanes: None, owner: Person, there: Receiver, how: str
) -> None:
    task_id = task(owner)
    hook(owner, task_id, f"{there.url}/former", "0.3")
    happens(task_id, WORKS, DONE)
    if how == "removed":
        ask(owner, DeletePushConfig(task_id=task_id, id=task_id))
    elif how == "disabled":
        disable(Webhook.objects.get().pk, OPS)
    else:
        pump()
    former = len(there.got)
    for _ in range(2):
        hook(owner, task_id, f"{there.url}/new", "0.3")
        pump()
    assert [got.path for got in there.got[former:]] == ["/new"]
    assert '"completed"' in there.got[-1].raw.decode()
