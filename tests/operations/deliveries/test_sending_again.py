"""Operators send deliveries again: receivers see those of each webhook in the order of their events."""

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Delivery, Webhook
from tasks_app.webhooks import disable, send_again
from tasks_app.webhooks.sending import Sender
from tests.conftest import Person
from tests.operations.rows import chunk
from tests.operations.webhooks import NOTHING, OPS, WORKS, happens, hook, hooked, pump, seqs, states
from tests.support.commands import printed
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]
PATHS = ("/a", "/b", "/c", "/d")
EVENTS = 8


@pytest.fixture
def sender() -> Iterator[Sender]:
    """Give a sender at work in a thread of its own."""
    found = Sender()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def dead(lanes: None, owner: Person, there: Receiver) -> list[str]:
    """Return deliveries of several webhooks that were all refused, newest first, as the lists show them."""
    there.default = Reply(404)
    first = hooked(owner, there.url + PATHS[0])
    hook(owner, first, there.url + PATHS[1])
    tasks = [first, *(hooked(owner, there.url + path) for path in PATHS[2:])]
    for task_id in tasks:
        happens(task_id, WORKS, *(chunk(str(number)) for number in range(EVENTS - 1)))
    pump()
    assert {state for _, state, _ in states()} == {"dead"}
    there.default = Reply()
    there.got.clear()
    return list(Delivery.objects.order_by("-id").values_list("pk", flat=True))


def _by_the_act(ids: Sequence[str]) -> None:
    send_again(ids, OPS)


def _through_the_admin(ids: Sequence[str]) -> None:
    client, there = Client(), reverse("admin:tasks_app_delivery_changelist")
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    form = {"action": "send_again", "_selected_action": list(ids), "post": "yes"}
    assert client.post(there, form).status_code == 302
    banners = client.get(there).content.decode()
    assert f"Queued to be sent again: {len(ids)} deliveries." in banners
    assert banners.count('class="success"') == 1


def _by_command(ids: Sequence[str]) -> None:
    assert printed("deliveries", "retry", *ids) == [{"id": id, "done": "retry"} for id in ids]


def _from_the_input(ids: Sequence[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", StringIO("\n".join(ids)))
        printed("deliveries", "retry", "-")


WAYS = {"act": _by_the_act, "admin": _through_the_admin, "command": _by_command, "input": _from_the_input}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_selection_reaches_each_webhook_in_the_order_of_the_events(
    dead: list[str], sender: Sender, there: Receiver, way: Any
) -> None:
    way(dead)
    there.wait(len(dead))
    for path in PATHS:
        assert [got.seq for got in there.at(path)] == list(range(2, 2 + EVENTS))


def test_nothing_is_due_before_the_whole_selection_waits(
    dead: list[str], there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.webhooks.again.hints.due", lambda kind: pump())
    send_again(dead, OPS)
    assert len(there.got) == len(dead)
    for path in PATHS:
        assert [got.seq for got in there.at(path)] == list(range(2, 2 + EVENTS))


def test_one_that_is_sent_again_behind_another_waits_for_it(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.script = [Reply(404), NOTHING]
    happens(hooked(owner, there.url), WORKS, chunk("one"), chunk("two"))
    pump()
    assert states() == [(2, "dead", 1), (3, "waiting", 1), (4, "waiting", 0)]
    first, head, behind = Delivery.objects.order_by("seq").values_list("pk", flat=True)
    due_at = Webhook.objects.get().due_at
    answers = send_again([behind], OPS)
    assert Webhook.objects.get().due_at == due_at, "its receiver may have said when to come again"
    assert "behind the delivery of event 3" in answers[behind].note
    pump()
    assert len(there.got) == 2
    assert not send_again([behind, first, head], OPS)[behind].note
    pump()
    assert seqs(there)[2:] == [2, 3, 4]


def test_each_refusal_to_send_again_says_why_and_stops_no_other(
    dead: list[str], owner: Person, there: Receiver
) -> None:
    off = Delivery.objects.get(pk=dead[0])
    disable(off.webhook_id, OPS)
    answers = send_again([*dead, "nothing", "n\0l"], OPS)
    assert answers[off.pk].refusal == "Its webhook is disabled: disabled by ops."
    assert "There is no delivery 'nothing'" in answers["nothing"].refusal
    assert answers["n\0l"].refusal
    pump()
    assert len(there.got) == 3 * EVENTS
