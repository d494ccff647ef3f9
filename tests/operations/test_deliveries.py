"""Deliveries: every event, in order, at least once, whatever the receiver does; and nobody waits for another."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from standardwebhooks import Webhook, WebhookVerificationError

from a2a.errors import InvalidParams
from a2a.requests import CancelTask, CreatePushConfig, DeletePushConfig, ListPushConfigs
from a2a.states import TaskState
from a2a.types import Part
from tasks_app import clock, outbound, sweeper
from tasks_app import statements as prepared_ones
from tasks_app.bridge import KINDS, Do, bridge, perform
from tasks_app.deliveries import (
    ActRefused,
    disable,
    enable,
    give_up,
    oldest_due,
    secret_of,
    send_again,
    shown_body,
    turns,
)
from tasks_app.deliveries.posting import headers
from tasks_app.deliveries.schedule import GAPS, JITTER, TryResult
from tasks_app.deliveries.sender import Sender
from tasks_app.event_log import PUSHING, Append, Appended, Remove, remove
from tasks_app.health import lags
from tasks_app.ids import uuid7_at
from tasks_app.models import Delivery, DeliveryTry, Event, File, PushConfig, Task, Turn
from tasks_app.sweeper import forget
from tests.conftest import PATIENCE, Person, on_postgres, until
from tests.operations.asking import ask, message, send, sent
from tests.operations.rows import LONG_AGO, addition, chunk, creation, status, together
from tests.operations.webhooks import Hand, config, happens, hook, hooked, pump, task
from tests.receiver import Receiver, Reply, receiver
from tests.servers import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
NOTHING = Reply(503)


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True


@pytest.fixture
def there() -> Any:
    with receiver() as found:
        yield found


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    moved = Hand()
    monkeypatch.setattr(clock, "now", moved)
    monkeypatch.setattr(clock, "shared", moved)
    return moved


def states() -> list[tuple[int, str, int]]:
    return list(Delivery.objects.order_by("config_id", "seq").values_list("seq", "state", "tries"))


def seqs(there: Receiver) -> list[int]:
    return [got.seq for got in there.got]


WORKS, DONE = status(TaskState.WORKING), status(TaskState.COMPLETED)


# ------------------------------------------------------------------- bodies


def test_each_version_is_told_in_its_own_words_and_a_body_stays_as_it_was(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = hooked(owner, f"{there.url}/new", id="new")
    hook(owner, task_id, f"{there.url}/old", "0.3", id="old")
    happens(task_id, WORKS, chunk("one", append=False), chunk("two"), DONE)
    pump()
    new, old = there.at("/new"), there.at("/old")
    assert [list(got.json) for got in new] == [
        ["statusUpdate"], ["artifactUpdate"], ["artifactUpdate"], ["statusUpdate"],
    ]  # fmt: skip
    assert [got.seq for got in new] == [2, 3, 4, 5]
    assert [(got.seq, got.json["kind"], got.json["status"]["state"]) for got in old] == [
        (2, "task", "working"), (5, "task", "completed"),
    ]  # fmt: skip
    # The task as of the event: when it began to work there was no artifact yet.
    assert "artifacts" not in old[0].json
    assert [part["text"] for part in old[1].json["artifacts"][0]["parts"]] == ["one", "two"]
    assert {got.headers["a2a-version"] for got in new} == {"1.0"}
    assert {got.headers["a2a-version"] for got in old} == {"0.3"}


def test_events_written_together_are_delivered_each_as_of_itself(lanes: None, owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url, "0.3")
    assert bridge.do(addition(task_id, WORKS, chunk("one", append=False), DONE))
    pump()
    assert [(got.seq, got.json["status"]["state"], len(got.json.get("artifacts", ()))) for got in there.got] == [
        (2, "working", 0), (4, "completed", 1),
    ]  # fmt: skip


def test_events_before_a_registration_are_not_delivered_and_those_after_a_removal_neither(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = task(owner)
    happens(task_id, WORKS)
    hook(owner, task_id, there.url, id="a")
    happens(task_id, chunk("one"))
    pump()
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    happens(task_id, chunk("two"), DONE)
    pump()
    assert seqs(there) == [3]
    assert states() == [(3, "delivered", 1)]


# --------------------------------------------------------- what a receiver does


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
    # Head of the line: nothing overtakes the first one, and it is not asked all the time.
    assert set(seqs(there)) == {2}
    assert 5 < tried < 15
    assert len({got.headers["webhook-id"] for got in there.got}) == 1
    assert len({got.headers["webhook-timestamp"] for got in there.got}) == tried
    there.default = Reply(200)
    hand.on(hours=6)  # The longest gap after so many tries, with its fifth, is under five.
    pump()
    assert seqs(there)[tried:] == [2, 3, 4, 5]
    assert states() == [(2, "delivered", tried + 1), (3, "delivered", 1), (4, "delivered", 1), (5, "delivered", 1)]
    assert DeliveryTry.objects.filter(status=503).count() == tried


def test_a_receiver_that_is_not_there_is_tried_again(lanes: None, owner: Person, hand: Hand) -> None:
    task_id = hooked(owner, f"http://127.0.0.1:{free_port()}/")
    happens(task_id, WORKS)
    pump()
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.tries, delivery.status) == ("waiting", 1, None)
    assert "connection failed" in delivery.error


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
    assert "statusUpdate" in shown_body(Delivery.objects.get(seq=2))


@pytest.mark.parametrize("code", [301, 400, 404])
def test_a_refusal_is_final_for_that_delivery_alone(lanes: None, owner: Person, there: Receiver, code: int) -> None:
    there.script = [Reply(code, {"Location": there.url})]
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]
    assert str(code) in Delivery.objects.get(seq=2).error


def test_gone_disables_the_webhook_until_it_is_registered_again(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(410)]
    task_id = hooked(owner, there.url, id="a")
    happens(task_id, WORKS, chunk("one"))
    pump()
    happens(task_id, chunk("two"))
    pump()
    assert (seqs(there), states()) == ([2], [(2, "dead", 1), (3, "dead", 0)])
    (row,) = PushConfig.objects.all()
    assert (row.state, row.due_at, "410" in row.reason) == ("disabled", None, True)
    hook(owner, task_id, there.url, id="a")
    happens(task_id, chunk("three"))
    pump()
    assert seqs(there) == [2, 5]
    assert PushConfig.objects.count() == 1


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


def test_what_a_receiver_writes_back_is_not_kept(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(500, {"X-Secret": "canary"}, body=b"canary" * 100_000)]
    happens(hooked(owner, there.url), WORKS)
    pump()
    kept = [str(value) for row in (*Delivery.objects.values(), *DeliveryTry.objects.values()) for value in row.values()]
    assert "canary" not in "".join(kept)
    assert states() == [(2, "waiting", 1)]


def test_an_answer_that_never_comes_is_given_up(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.deliveries.posting.TRY_SECONDS", 0.2)
    there.default = Reply(until=threading.Event())
    happens(hooked(owner, there.url), WORKS)
    pump()
    assert states() == [(2, "waiting", 1)]
    assert "No answer within 0.2 s" in Delivery.objects.get().error


# ------------------------------------------------------- one beside another


def test_a_slow_receiver_holds_up_neither_another_nor_the_order(service: None, owner: Person, there: Receiver) -> None:
    gate = threading.Event()
    there.paths["/slow"] = Reply(until=gate)
    slow, fast = hooked(owner, f"{there.url}/slow"), hooked(owner, f"{there.url}/fast")
    for one in (slow, fast):
        happens(one, chunk("one"), chunk("two"), chunk("three"))
    fast_ones = there.wait(3, "/fast")
    assert [got.seq for got in fast_ones] == sorted(got.seq for got in fast_ones)
    assert len(there.wait(1, "/slow")) == 1
    gate.set()
    slow_ones = there.wait(3, "/slow")
    assert [got.seq for got in slow_ones] == sorted(got.seq for got in slow_ones)


def so_many_at_once(there: Receiver, number: int, slow: Sequence[str], fast: str) -> None:
    """Of the tasks whose webhooks are slow so many are told of at once, and of the other one beside them."""
    gate = threading.Event()
    there.paths["/slow"] = Reply(until=gate)
    for task_id in slow:
        happens(task_id, chunk("x"))
    there.wait(number, "/slow")
    happens(fast, chunk("x"))
    there.wait(1, "/fast")
    assert len(there.at("/slow")) == number
    gate.set()
    there.wait(len(slow), "/slow")


@pytest.fixture
def hosts(there: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses of six hosts, all of which are the receiver."""
    settings.A2A_OUTBOUND_HOSTS = [f"{number}.internal" for number in range(6)]

    async def lookup(host: str, port: int, _: Any) -> outbound.Found:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(outbound, "lookup", lookup)
    return [f"http://{host}:{there.server_address[1]}" for host in settings.A2A_OUTBOUND_HOSTS]


def test_a_slow_host_leaves_slots_to_other_hosts(service: None, owner: Person, there: Receiver, settings: Any) -> None:
    settings.A2A_DELIVERY_SLOTS = turns.OF_SLOTS * (turns.AT_A_HOST + 2)
    slow = [hooked(owner, f"{there.url}/slow") for _ in range(turns.AT_A_HOST + 4)]
    fast = hooked(owner, f"http://localhost:{there.server_address[1]}/fast")
    so_many_at_once(there, turns.AT_A_HOST, slow, fast)


def test_an_owner_of_many_slow_hosts_leaves_slots_to_other_owners(
    service: None, owner: Person, stranger: Person, there: Receiver, hosts: list[str], settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = 4
    slow = [hooked(owner, f"{host}/slow") for host in hosts]
    so_many_at_once(there, 4 // turns.OF_SLOTS, slow, hooked(stranger, f"{hosts[0]}/fast"))


def test_an_owner_whose_webhooks_are_slow_leaves_their_host_to_other_owners(
    service: None, owner: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = turns.OF_SLOTS * (turns.AT_A_HOST + 2)
    slow = [hooked(owner, f"{there.url}/slow") for _ in range(turns.AT_A_HOST + 1)]
    so_many_at_once(there, turns.AT_A_HOST, slow, hooked(stranger, f"{there.url}/fast"))


def test_a_host_of_many_owners_leaves_slots_to_other_hosts(
    service: None, owner: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = 4
    slow = [hooked(person, f"{there.url}/slow") for person in (owner, stranger, owner, stranger)]
    fast = hooked(stranger, f"http://localhost:{there.server_address[1]}/fast")
    so_many_at_once(there, 4 // turns.OF_SLOTS, slow, fast)


def test_as_many_tries_are_under_way_as_there_are_slots(
    lanes: None, owner: Person, colleague: Person, stranger: Person, there: Receiver, hosts: list[str], settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = 4
    gate = threading.Event()
    there.default = Reply(until=gate)
    for place, host in enumerate(hosts):
        happens(hooked((owner, colleague, stranger)[place // 2], host), chunk("x"))

    async def looked() -> list[int]:
        sender = Sender()
        await sender.look()
        await sender.look()
        under_way = [len(sender.running)]
        gate.set()
        await asyncio.gather(*sender.running)
        await sender.look()
        under_way.append(len(sender.running))
        await asyncio.gather(*sender.running)
        assert sender.client
        await sender.client.aclose()
        return under_way

    assert asyncio.run(looked()) == [4, 2]
    assert {state for _, state, _ in states()} == {"delivered"}


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
    (first,) = turns.take("one", 5, turns.Busy())
    assert turns.take("two", 5, turns.Busy()) == []
    hand.on(seconds=21)
    (second,) = turns.take("two", 5, turns.Busy())
    assert second.delivery == first.delivery
    turns.settle(first, TryResult(status=404), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "waiting", 1)]
    turns.settle(second, TryResult(status=204), clock.now(), clock.now(), 0.5)
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
    (turn,) = turns.take("one", 5, turns.Busy())
    another_machine()
    assert turns.take("two", 5, turns.Busy()) == []
    under_way = remove(Remove(task_id=task_id, config_id="a", now=clock.now()))
    assert under_way
    assert under_way.lasts()
    turns.settle(turn, TryResult(status=204), clock.now(), clock.now(), 0.5)
    assert not under_way.lasts()


@pytest.mark.parametrize("how", ["registered", "with its message", "registered again", "at the end", "sent again"])
def test_what_a_machine_whose_clock_differs_has_written_is_due_at_once(
    lanes: None, owner: Person, there: Receiver, another_machine: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch, how: str,
) -> None:  # fmt: skip
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
            send_again(Delivery.objects.get().pk)
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
    due, take, waits, leases = turns.due, turns.take, iter([15]), []

    def slowly(now: Any, busy: turns.Busy) -> Any:
        hand.on(seconds=next(waits, 0))
        return due(now, busy)

    def taken(*arguments: Any) -> Any:
        found = take(*arguments)
        leases.extend(turn.until - clock.now() for turn in found)
        return found

    monkeypatch.setattr(turns, "due", slowly)
    monkeypatch.setattr(turns, "take", taken)
    pump()
    assert leases == [turns.LEASE]


def test_a_try_that_would_outlast_its_lease_is_not_begun(
    lanes: None, owner: Person, hand: Hand, there: Receiver
) -> None:
    happens(hooked(owner, there.url), WORKS)
    (turn,) = turns.take("one", 1, turns.Busy())
    hand.on(seconds=11)
    asyncio.run(Sender()._send(turn))
    assert (there.got, states()) == ([], [(2, "waiting", 0)])
    pump()
    assert states() == [(2, "delivered", 1)]


def superseded(owner: Person, there: Receiver, hand: Hand) -> turns.Turn:
    """A try at an address that another one has taken the place of since."""
    task_id = hooked(owner, "http://127.0.0.1:65001/", id="a")
    happens(task_id, WORKS, chunk("one"))
    (turn,) = turns.take("one", 1, turns.Busy())
    hand.on(seconds=1)
    hook(owner, task_id, there.url, id="a")
    return turn


@pytest.mark.parametrize("code", [410, 404, 503])
def test_what_the_former_address_says_decides_nothing_for_the_new_one(
    lanes: None, owner: Person, there: Receiver, hand: Hand, code: int
) -> None:
    turn = superseded(owner, there, hand)
    pump()
    assert not there.got  # Never two tries at a time for one webhook.
    turns.settle(turn, TryResult(status=code), clock.now(), clock.now(), 0.5)
    assert states() == [(2, "waiting", 1), (3, "waiting", 0)]
    pump()
    assert states() == [(2, "delivered", 2), (3, "delivered", 1)]
    assert DeliveryTry.objects.filter(status=code).count() == 1


def test_what_arrived_at_the_former_address_has_arrived(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    turn = superseded(owner, there, hand)
    turns.settle(turn, TryResult(status=200), clock.now(), clock.now(), 0.5)
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
    assert done.wait(10)
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
    assert done.wait(10)
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


# ------------------------------------------------------------------ secrets


def test_a_receiver_can_verify_what_it_gets(lanes: None, owner: Person, there: Receiver) -> None:
    happens(hooked(owner, there.url), WORKS)
    pump()
    secret = secret_of(PushConfig.objects.get().pk)
    (got,) = there.got
    assert Webhook(secret).verify(got.raw, dict(got.headers)) == got.json
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(got.raw.replace(b"WORKING", b"FAILED "), dict(got.headers))
    assert got.headers["webhook-id"] == Delivery.objects.get().pk


def test_an_owner_may_bring_the_secret_and_it_is_never_sent(lanes: None, owner: Person, there: Receiver) -> None:
    secret = "whsec_" + "A" * 32
    happens(hooked(owner, there.url, schemes=("StandardWebhooks",), credentials=secret), WORKS)
    pump()
    (got,) = there.got
    Webhook(secret).verify(got.raw, dict(got.headers))
    assert "authorization" not in got.headers
    assert secret not in str(got)


def test_the_servers_secret_stays_while_the_same_address_is_registered_again(
    lanes: None, owner: Person, settings: Any
) -> None:
    url, other = "http://127.0.0.1:65001/", "http://127.0.0.1:65001/other"
    task_id, known = hooked(owner, url, id="a"), []
    own = {"schemes": ("StandardWebhooks",), "credentials": "whsec_" + "A" * 32}

    def again(address: str, **more: Any) -> None:
        hook(owner, task_id, address, id="a", **more)
        known.append(secret_of(PushConfig.objects.get().pk))

    again(url)
    again(url, token="another", schemes=("Bearer",), credentials="c")
    assert len(set(known)) == 1
    again(other)
    again(other, **own)
    again(other)
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    again(other)
    # One that nobody can read any more is worth nothing.
    settings.SECRET_KEY = "another key, which is long enough for it"
    again(other)
    assert len(set(known)) == 1 + len(known[2:])


def test_nothing_secret_can_be_read_from_the_database_or_by_its_owner(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = hooked(owner, there.url, token="canary-token", schemes=("Bearer",), credentials="canary-credentials")
    happens(task_id, WORKS)
    secret = secret_of(PushConfig.objects.get().pk)
    pump()
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names() if name.startswith("tasks_app_")]
        text = ""
        for table in tables:
            cursor.execute(f"select * from {table}")  # noqa: S608
            text += str(cursor.fetchall())
    assert "127.0.0.1" in text
    assert "canary" not in text
    assert secret not in text
    assert "canary" not in str(ask(owner, ListPushConfigs(task_id=task_id, page_size=10)))
    assert there.got[0].headers["authorization"] == "Bearer canary-credentials"


def test_a_former_key_still_opens_and_without_it_a_delivery_waits(
    lanes: None, owner: Person, there: Receiver, settings: Any, hand: Hand
) -> None:
    happens(hooked(owner, there.url, token="tok"), WORKS)
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key, which is long enough for it"
    pump()
    assert states() == [(2, "waiting", 1)]
    assert "SECRET_KEY" in Delivery.objects.get().error
    settings.SECRET_KEY_FALLBACKS = [former]
    hand.on(minutes=1)
    pump()
    assert there.got[0].headers["a2a-notification-token"] == "tok"


def test_the_headers_of_a_turn_say_what_it_is(lanes: None, owner: Person) -> None:
    happens(hooked(owner, "http://127.0.0.1:65001/", "0.3"), WORKS)
    (turn,) = turns.take("one", 1, turns.Busy())
    told = headers(turn, "{}", clock.now())
    assert told["Content-Type"] == "application/json"
    assert "Authorization" not in told
    assert {told["A2A-Version"], told["A2A-Event-Sequence"]} == {"0.3", "2"}


# ------------------------------------------------------------ what it costs


def statements(work: Any) -> int:
    """How many the write lane needs for it."""
    before, bridge.inline = bridge.inline, True
    try:
        with CaptureQueriesContext(connection) as captured:
            work()
    finally:
        bridge.inline = before
    return len(captured)


def test_a_task_without_webhooks_pays_nothing(lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> Any:
        return connection.cursor()

    # Statements that PostgreSQL prepares pass by Django, which counts; and one a second is about their plans.
    monkeypatch.setattr(prepared_ones, "_bound", seen)
    monkeypatch.setattr(prepared_ones, "_keep_plans_fresh", lambda: None)
    item = addition(task(owner), WORKS)
    # SQLite: begin, update, insert, commit.
    assert statements(lambda: bridge.do(item)) == (1 if on_postgres() else 4)


def test_in_a_group_tasks_with_and_without_webhooks_get_their_own(lanes: None, owner: Person, there: Receiver) -> None:
    plain, with_one = task(owner), hooked(owner, there.url)
    items = [addition(plain, WORKS), addition(with_one, WORKS)]
    first, second = perform(KINDS[Append], items)
    assert isinstance(first, Appended)
    assert isinstance(second, Appended) if not on_postgres() else second is PUSHING
    if on_postgres():
        items = [addition(plain, chunk("x")), items[1]]
        items[1].pushing = True
        assert [type(result) for result in perform(KINDS[Append], items)] == [Appended, Appended]
    pump()
    assert seqs(there) == [2]


def test_an_item_that_is_tried_again_in_a_smaller_group_keeps_its_numbers(lanes: None, owner: Person) -> None:
    one, other = task(owner), task(owner)
    taken = creation(owner, "taken")
    bridge.do(taken)
    wrong = addition(other, WORKS, key=taken.key)
    first, second = perform(KINDS[Append], [addition(one, WORKS), wrong])
    assert isinstance(first, Appended)
    assert isinstance(second, IntegrityError)
    # The replay of all logs, at the end, finds no gap.


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


# ------------------------------------------------------------- with a message


@pytest.mark.parametrize("agent", ["echo", "form-generator"])
def test_a_webhook_that_comes_with_a_message_hears_of_everything(
    service: None, owner: Person, there: Receiver, agent: str
) -> None:
    made = sent(owner, "hello", agent, push_config=config(there.url))
    last = until(lambda: [got for got in there.got if "COMPLETED" in got.raw.decode()], "the end arrives")
    assert seqs(there) == list(range(1, last[0].seq + 1))
    assert there.got[0].json["task"]["id"] == made.id


def test_a_run_that_is_written_at_once_is_told_step_by_step(service: None, owner: Person, there: Receiver) -> None:
    made = sent(owner, "hello", "form-generator", push_config=config(there.url, "0.3"))
    until(lambda: there.got and there.got[-1].json["status"]["state"] == "completed", "the end arrives")
    last = there.got[-1].json
    assert [got.json["status"]["state"] for got in there.got] == ["submitted", "working", "working", "completed"]
    assert ["artifacts" in got.json for got in there.got] == [False, False, False, True]
    assert {(got.json["id"], got.json["contextId"]) for got in there.got} == {(made.id, made.context_id)}
    assert last["artifacts"][0]["parts"][0]["text"] == made.artifacts[0].parts[0].text


def test_a_large_file_is_told_as_a_link(service: None, owner: Person, there: Receiver) -> None:
    said = message(parts=(Part(raw=b"x" * 50_000, filename="x.txt"),))
    sent(owner, said, "echo", push_config=config(there.url))
    there.wait(1)
    text = there.got[0].raw.decode()
    assert "taskdesk-file:" not in text
    assert "/files/" in text
    Webhook(secret_of(PushConfig.objects.get().pk)).verify(there.got[0].raw, dict(there.got[0].headers))


def test_a_webhook_that_comes_with_the_next_message_hears_what_follows(
    service: None, owner: Person, there: Receiver
) -> None:
    first = sent(owner, "one", "asks")
    sent(owner, message("two", task_id=first.id), push_config=config(there.url, "0.3"))
    until(lambda: [got for got in there.got if b'"completed"' in got.raw], "the end arrives")
    assert there.got[0].json["status"]["state"] == "submitted"


def test_the_same_message_again_gets_its_task_although_its_webhook_may_not_be_called_any_more(
    service: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ["127.0.0.1"]

    async def lookup(host: str, port: int, _: Any) -> outbound.Found:
        return [(2, 1, 6, "", (numbers[0], port))]

    monkeypatch.setattr(outbound, "lookup", lookup)
    said, webhook = message(), config(f"http://localhost:{there.server_address[1]}/")
    made = sent(owner, said, "echo", push_config=webhook)
    numbers[0] = "10.0.0.1"
    assert sent(owner, said, "echo", push_config=webhook).id == made.id
    with pytest.raises(InvalidParams):
        sent(owner, message(), "echo", push_config=webhook)


def test_a_task_has_ten_webhooks_at_most(lanes: None, owner: Person) -> None:
    task_id = task(owner)
    for place in range(10):
        hook(owner, task_id, "http://127.0.0.1:65001/", id=str(place))
    hook(owner, task_id, "http://127.0.0.1:65001/again", id="3")
    with pytest.raises(InvalidParams) as told:
        ask(owner, CreatePushConfig(task_id=task_id, config=config("http://127.0.0.1:65001/", id="one more")))
    assert told.value.violations[0][0] == "id"
    first = ask(owner, ListPushConfigs(task_id=task_id, page_size=4))
    rest = ask(owner, ListPushConfigs(task_id=task_id, page_size=9, page_token=first.next_page_token))
    assert [found.id for found in (*first.configs, *rest.configs)] == [str(place) for place in range(10)]
    assert rest.next_page_token == ""
    for token in ("nonsense", first.next_page_token + "x"):
        with pytest.raises(InvalidParams):
            ask(owner, ListPushConfigs(task_id=task_id, page_size=4, page_token=token))
    with pytest.raises(InvalidParams):
        ask(owner, ListPushConfigs(task_id=task(owner), page_size=4, page_token=first.next_page_token))


def test_webhooks_that_come_with_many_messages_at_once_are_ten_at_most(service: None, owner: Person) -> None:
    made = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: Task.objects.get().state == "working", "it is worked on")

    def more(place: int) -> Any:
        said, webhook = message("more", task_id=made.id), config(f"http://127.0.0.1:65001/{place}", id=f"w{place}")
        return send(owner, said, return_immediately=True, push_config=webhook)

    results = together(16, more)
    refused = [result for result in results if isinstance(result, InvalidParams)]
    assert (len(refused), PushConfig.objects.count()) == (6, 10), results
    assert Event.objects.filter(kind="message").count() == 10
    assert {error.violations[0][0] for error in refused} == {"id"}
    ask(owner, CancelTask(id=made.id))


# ---------------------------------------------------------------- operators


def test_operators_send_again_and_give_up(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
    there.script = [Reply(404), NOTHING]
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "waiting", 1)]
    dead, waiting = Delivery.objects.order_by("seq")
    send_again(dead.pk)
    give_up(waiting.pk)
    with pytest.raises(ActRefused):
        give_up(waiting.pk)
    with pytest.raises(ActRefused):
        send_again("nothing")
    pump()
    assert states() == [(2, "delivered", 2), (3, "dead", 1)]
    (row,) = PushConfig.objects.all()
    disable(row.pk, "ops")
    with pytest.raises(ActRefused):
        send_again(waiting.pk)
    enable(row.pk)
    send_again(waiting.pk)
    pump()
    assert states() == [(2, "delivered", 2), (3, "delivered", 2)]


def test_to_give_up_one_that_waits_behind_another_makes_that_one_no_earlier(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.script = [NOTHING]
    happens(hooked(owner, there.url), WORKS, chunk("one"))
    pump()
    head, behind = Delivery.objects.order_by("seq")
    due_at = PushConfig.objects.get().due_at
    give_up(behind.pk)
    assert PushConfig.objects.get().due_at == due_at
    give_up(head.pk)
    assert PushConfig.objects.get().due_at is None
    pump()
    assert states() == [(2, "dead", 1), (3, "dead", 0)]


@pytest.mark.parametrize("act", ["give up", "disable"])
def test_what_was_acknowledged_stays_delivered_when_an_operator_stops_sending_it_again(
    lanes: None, owner: Person, there: Receiver, hand: Hand, act: str
) -> None:
    there.script = [Reply(204), NOTHING, NOTHING]
    happens(hooked(owner, there.url), WORKS, chunk("one"))
    pump()
    assert states() == [(2, "delivered", 1), (3, "waiting", 1)]
    first, second = Delivery.objects.order_by("seq").values_list("pk", flat=True)
    send_again(first)
    hand.on(minutes=1)
    pump()
    assert states() == [(2, "waiting", 2), (3, "waiting", 1)], "the second time it failed"
    if act == "give up":
        give_up(first)
        give_up(second)
    else:
        disable(PushConfig.objects.get().pk, "ops")
    assert states() == [(2, "delivered", 2), (3, "dead", 1)]
    assert not Delivery.objects.filter(done_at=None).exists()


def test_what_is_overdue_is_known(lanes: None, owner: Person, hand: Hand) -> None:
    happens(hooked(owner, "http://127.0.0.1:65001/"), WORKS)
    assert oldest_due(timedelta(seconds=60)) is None
    hand.on(seconds=61)
    assert oldest_due(timedelta(seconds=60)) is not None
    (sentence,) = async_to_sync(lags)()
    assert "61 s" in sentence


def test_a_task_is_not_forgotten_while_a_delivery_waits(
    lanes: None, owner: Person, there: Receiver, hand: Hand, settings: Any
) -> None:
    task_id = task(owner, id=uuid7_at(LONG_AGO))
    hook(owner, task_id, there.url)
    happens(task_id, WORKS, DONE)
    Task.objects.filter(pk=task_id).update(status_at=LONG_AGO)
    bridge.do(Do(forget))
    assert Task.objects.count() == 1
    pump()
    bridge.do(Do(forget))
    assert [model.objects.count() for model in (Task, PushConfig, Delivery, DeliveryTry)] == [0, 0, 0, 0]


def test_files_of_a_bare_reply_go_with_it_while_deliveries_are_forgotten(
    lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "BATCH", 2)
    task_id = hooked(owner, "http://127.0.0.1:65001/")
    (webhook,) = PushConfig.objects.all()
    turn = Turn.objects.create(
        id=uuid7_at(LONG_AGO), owner_id=owner.caller.owner_id, context_id="c", message="{}", reply="{}",
        created_at=LONG_AGO,
    )  # fmt: skip
    File.objects.create(id="f", holder=turn.pk, name="f", media_type="a/b", size=1, digest="", created_at=LONG_AGO)
    for seq in range(2):
        Delivery.objects.create(
            id=uuid7_at(LONG_AGO)[:-1] + str(seq), config=webhook, task_id=task_id, seq=seq, version="1.0", body="{}",
            state="delivered", created_at=LONG_AGO,
        )  # fmt: skip
    assert bridge.do(Do(forget))
    assert not Delivery.objects.exists()
    assert not Turn.objects.exists()
    assert File.objects.get().holder == ""


@pytest.mark.parametrize("status", [404, 410])
def test_what_was_acknowledged_stays_delivered_when_it_is_refused_the_second_time(
    lanes: None, owner: Person, there: Receiver, hand: Hand, status: int
) -> None:
    there.script = [Reply(204), Reply(status)]
    happens(hooked(owner, there.url), WORKS)
    pump()
    send_again(Delivery.objects.get().pk)
    pump()
    assert states() == [(2, "delivered", 2)]
    assert PushConfig.objects.get().state == ("disabled" if status == 410 else "active")


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
        disable(PushConfig.objects.get().pk, "ops")
    else:
        pump()
    former = len(there.got)
    for _ in range(2):
        hook(owner, task_id, f"{there.url}/new", "0.3")
        pump()
    assert [got.path for got in there.got[former:]] == ["/new"]
    assert '"completed"' in there.got[-1].raw.decode()
