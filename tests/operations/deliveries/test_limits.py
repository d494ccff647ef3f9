"""Limits of deliveries: tries at the same time, of one owner and at one address, and bytes in a minute."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from a2a.errors import RateLimited
from a2a.requests import DeletePushConfig
from tasks_app import clock
from tasks_app.event_log import outbox
from tasks_app.event_log.outbox import END_ADDRESSES
from tasks_app.limits.buckets import DebtBuckets
from tasks_app.models import Delivery, Webhook
from tasks_app.outbound import policy
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import AT_A_HOST, OF_SLOTS, Busy, Places, place_limit_reason, place_of
from tasks_app.webhooks.sending import Sender
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.rows import chunk
from tests.operations.webhooks import DONE, happens, hook, hooked, pump, states, task
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply, receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


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
    """Check that so many slow webhooks are called at once, and the fast one beside them."""
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
def there() -> Iterator[Receiver]:
    """Give a receiver at every address of this machine: 127.0.0.1, 127.0.0.2 and so on."""
    with receiver("0.0.0.0") as found:  # noqa: S104  # Linux has a network of loopback addresses
        yield found


Names = Callable[[str, str], list[str]]


@pytest.fixture
def names(there: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Give URLs of twelve hosts, each of which has the address in which its number replaces the braces."""

    def given(name: str, address: str) -> list[str]:
        settings.A2A_OUTBOUND_HOSTS = [name.format(number) for number in range(12)]
        numbers = {name.format(number): address.format(number + 1) for number in range(12)}

        async def lookup(host: str, port: int, _: Any) -> policy.Answers:
            return [(2, 1, 6, "", (numbers[host], port))]

        monkeypatch.setattr(policy, "lookup", lookup)
        return [f"http://{host}:{there.server_address[1]}" for host in settings.A2A_OUTBOUND_HOSTS]

    return given


@pytest.fixture
def hosts(names: Names) -> list[str]:
    """Return addresses of six hosts, all of which are the receiver."""
    return names("{}.internal", "127.0.0.{}")[:6]


def test_a_slow_host_leaves_slots_to_other_hosts(service: None, owner: Person, there: Receiver, settings: Any) -> None:
    settings.A2A_DELIVERY_SLOTS = OF_SLOTS * (AT_A_HOST + 2)
    slow = [hooked(owner, f"{there.url}/slow") for _ in range(AT_A_HOST + 4)]
    fast = hooked(owner, f"http://127.0.0.2:{there.server_address[1]}/fast")
    so_many_at_once(there, AT_A_HOST, slow, fast)


def test_an_owner_of_many_slow_hosts_leaves_slots_to_other_owners(
    service: None, owner: Person, stranger: Person, there: Receiver, hosts: list[str], settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = 4
    slow = [hooked(owner, f"{host}/slow") for host in hosts]
    so_many_at_once(there, 4 // OF_SLOTS, slow, hooked(stranger, f"{hosts[0]}/fast"))


def test_an_owner_whose_webhooks_are_slow_leaves_their_host_to_other_owners(
    service: None, owner: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = OF_SLOTS * (AT_A_HOST + 2)
    slow = [hooked(owner, f"{there.url}/slow") for _ in range(AT_A_HOST + 1)]
    so_many_at_once(there, AT_A_HOST, slow, hooked(stranger, f"{there.url}/fast"))


def test_a_host_of_many_owners_leaves_slots_to_other_hosts(
    service: None, owner: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_DELIVERY_SLOTS = 4
    slow = [hooked(person, f"{there.url}/slow") for person in (owner, stranger, owner, stranger)]
    fast = hooked(stranger, f"http://127.0.0.2:{there.server_address[1]}/fast")
    so_many_at_once(there, 4 // OF_SLOTS, slow, fast)


def test_each_slot_has_one_try_under_way(
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


# ------------------------------------------------------------------ addresses


def test_names_of_one_address_get_no_more_tries_than_the_address(
    service: None, owner: Person, stranger: Person, there: Receiver, names: Names
) -> None:
    wild = names("{}.wild.internal", "127.0.0.1")
    slow = [hooked(owner, f"{host}/slow") for host in wild]
    so_many_at_once(there, AT_A_HOST, slow, hooked(stranger, f"{wild[0]}/fast"))
    assert there.most_at_once <= AT_A_HOST + 1


def test_a_try_beyond_the_limit_of_its_address_is_not_made_and_says_why(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = hooked(owner, there.url)
    happens(task_id, chunk("x"))
    sender = Sender()
    (lease,) = leases.take("w", 1, Busy())
    for place in range(AT_A_HOST):
        sender.places.enter(replace(lease, webhook=f"another {place}"), 0, clock.now(), "127.0.0.1")

    async def tried() -> None:
        await sender._send(lease)
        assert sender.client
        await sender.client.aclose()

    asyncio.run(tried())
    row = Webhook.objects.get()
    assert (there.got, states()) == ([], [(2, "waiting", 0)])
    assert "at its address" in row.reason
    assert row.due_at
    assert row.lease_owner is None


@pytest.mark.parametrize(
    ("number", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_all_addresses_of_an_ipv6_network_count_as_one(number: str, place: str) -> None:
    assert place_of(number) == place


class Attempt(NamedTuple):
    """A try, as far as limits go."""

    webhook: str
    owner_id: int
    host: str


def test_a_try_that_has_left_is_counted_no_more(owner: Person) -> None:
    places, lease, now = Places(), Attempt(webhook="a", owner_id=1, host="h"), clock.now()
    places.enter(lease, 10, now, "192.0.2.1")
    places.enter(lease, 10, now, "192.0.2.2")
    places.leave(lease)
    places.leave(lease)
    assert (places.tries, places.of_owners, places.places) == ({}, {}, {})


# ---------------------------------------------------------------------- bytes


def test_deliveries_beyond_the_bytes_of_an_owner_wait_and_are_not_lost(
    lanes: None, owner: Person, stranger: Person, there: Receiver, hand: Hand, settings: Any
) -> None:
    settings.A2A_OWNER_DELIVERY_BYTES = 60_000
    tasks = [hooked(owner, f"{there.url}/mine") for _ in range(6)]
    sender = Sender()
    for task_id in tasks:
        happens(task_id, chunk("x" * 30_000))
    pump(sender)
    # The second one used up the limit.
    assert len(there.at("/mine")) == 2
    waiting = Webhook.objects.filter(due_at__isnull=False)
    assert {row.reason for row in waiting} == {leases.byte_limit_reason()}
    happens(hooked(stranger, f"{there.url}/other"), chunk("x"))
    pump(sender)
    assert len(there.at("/other")) == 1
    for half in range(1, 5):
        hand.on(seconds=31)
        pump(sender)
        assert sum(len(got.raw) for got in there.at("/mine")) <= 60_000 + half * 31_000 + 31_000
    assert {state for _, state, _ in states()} == {"delivered"}
    assert set(Webhook.objects.values_list("reason", flat=True)) == {""}


def test_an_owner_beyond_its_bytes_keeps_no_other_owner_waiting(
    lanes: None, owner: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_OWNER_DELIVERY_BYTES, settings.A2A_DELIVERY_SLOTS = 60_000, 4
    tasks = [hooked(owner, f"{there.url}/mine") for _ in range(4)]
    for task_id in (*tasks, hooked(stranger, f"{there.url}/other")):
        happens(task_id, chunk("x"))
    sender = Sender()
    assert sender.volumes.use(owner.caller.owner_id, 120_000, clock.now())

    async def looked() -> None:
        await sender.look()
        await asyncio.gather(*sender.running)
        if sender.client is not None:
            await sender.client.aclose()

    asyncio.run(looked())
    assert [got.path for got in there.got] == ["/other"]
    rows = Webhook.objects.filter(task__in=tasks)
    assert {row.reason for row in rows} == {leases.byte_limit_reason()}


def test_a_webhook_that_was_held_back_and_has_nothing_to_send_gives_no_reason(
    lanes: None, owner: Person, there: Receiver, hand: Hand, settings: Any
) -> None:
    settings.A2A_OWNER_DELIVERY_BYTES = 60_000
    happens(hooked(owner, f"{there.url}/mine"), chunk("x"))
    sender = Sender()
    assert sender.volumes.use(owner.caller.owner_id, 120_000, clock.now())
    pump(sender)
    assert Webhook.objects.get().reason == leases.byte_limit_reason()
    Delivery.objects.all().delete()
    hand.on(minutes=5)
    pump(sender)
    assert (Webhook.objects.get().due_at, Webhook.objects.get().reason, there.got) == (None, "", [])


def test_an_address_gets_no_more_bytes_whoever_sends_them_and_whatever_its_name(
    lanes: None, owner: Person, stranger: Person, there: Receiver, names: Names, hand: Hand, settings: Any
) -> None:
    settings.A2A_ADDRESS_DELIVERY_BYTES = 60_000
    wild = names("{}.wild.internal", "127.0.0.1")
    tasks = [hooked((owner, stranger)[place % 2], wild[place]) for place in range(6)]
    elsewhere = hooked(owner, f"http://127.0.0.2:{there.server_address[1]}/elsewhere")
    sender = Sender()
    for task_id in (*tasks, elsewhere):
        happens(task_id, chunk("x" * 30_000))
    pump(sender)
    # The second one used up the limit of its address, and none of that of the other.
    assert (len(there.at("/")), len(there.at("/elsewhere"))) == (2, 1)
    assert {row.reason for row in Webhook.objects.filter(due_at__isnull=False)} == {place_limit_reason()}
    for _ in range(4):
        hand.on(seconds=31)
        pump(sender)
    assert len(there.at("/")) == 6
    assert {state for _, state, _ in states()} == {"delivered"}


def test_a_webhook_is_no_cannon(lanes: None, owner: Person, there: Receiver, hand: Hand, settings: Any) -> None:
    settings.A2A_OWNER_DELIVERY_BYTES, settings.A2A_OWNER_WEBHOOKS = 3_000_000, 40
    task_id, sender = task(owner), Sender()
    refused: list[RateLimited] = []
    happens(task_id, chunk("x" * 900_000), DONE)
    for place in range(100):
        name = f"{place}"
        try:
            hook(owner, task_id, f"{there.url}/{place}", "0.3", id=name)
        except RateLimited as error:
            refused.append(error)
            continue
        pump(sender)
        ask(owner, DeletePushConfig(task_id=task_id, id=name))
    assert len(refused) == 60
    wait = str(refused[0].retry_after)
    assert refused[0].facts == {"limit": "webhooks registered in a minute", "most": "40", "retryAfter": wait}
    assert 1 <= refused[0].retry_after <= 60
    assert sum(len(got.raw) for got in there.got) <= 3_000_000 + 1_000_000


def test_an_address_hears_of_the_end_once_from_webhooks_that_come_and_go(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = task(owner)
    happens(task_id, DONE)
    for place in range(5):
        hook(owner, task_id, there.url, "0.3", id=f"{place}")
        pump()
        ask(owner, DeletePushConfig(task_id=task_id, id=f"{place}"))
    hook(owner, task_id, f"{there.url}/another", "0.3")
    pump()
    assert [got.path for got in there.got] == ["/", "/another"]


def test_a_webhook_that_moves_to_and_fro_hears_of_the_end_ten_times(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = task(owner)
    happens(task_id, DONE)
    for place in range(15):
        hook(owner, task_id, f"{there.url}/{place}", "0.3")
        pump()
    assert len(there.got) == END_ADDRESSES


def test_webhooks_that_come_and_go_leave_a_limited_number_of_rows(
    lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "END_WEBHOOKS", 5)
    task_id = task(owner)
    happens(task_id, DONE)
    for place in range(8):
        hook(owner, task_id, f"http://127.0.0.1:65001/{place}", id=f"{place}")
        ask(owner, DeletePushConfig(task_id=task_id, id=f"{place}"))
    assert (Webhook.objects.count(), Delivery.objects.count()) == (5, 5)
    hook(owner, task_id, "http://127.0.0.1:65001/again", id="4")
    assert Delivery.objects.get(webhook__name="4").state == "waiting"


def test_a_receiver_that_refuses_the_end_gets_a_limited_number_of_tries(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "END_TRIES", 5)
    there.default = Reply(404)
    task_id = task(owner)
    happens(task_id, DONE)
    for place in range(8):
        hook(owner, task_id, f"{there.url}/{place % 2}", id="a")
        pump()
    assert (len(there.got), [attempt for _, _, attempt in states()]) == (5, [5])
    assert not Delivery.objects.filter(state="waiting").exists()


def test_a_bucket_fills_evenly_and_its_debt_is_paid_first() -> None:
    buckets, now = DebtBuckets(lambda: 60.0), clock.now()
    assert buckets.use(1, 50, now)
    assert buckets.use(1, 40, now)
    assert (buckets.use(1, 1, now), buckets.wait(1, now)) == (False, 30)
    assert buckets.use(2, 1, now)
    assert not buckets.use(1, 1, now + timedelta(seconds=30))
    assert buckets.use(1, 1, now + timedelta(seconds=31))
    # A clock that goes back fills no bucket.
    assert buckets.wait(1, now) == 0.1
    buckets.give_back(1, 1, now)
    assert buckets.use(1, 1, now)


def test_buckets_that_are_full_again_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.limits.buckets.MAX_BUCKETS", 3)
    buckets, now = DebtBuckets(lambda: 60.0), clock.now()
    for owner_id in range(3):
        assert buckets.use(owner_id, 60 * owner_id + 1, now)
    assert buckets.use(9, 1, now + timedelta(seconds=70))
    assert set(buckets.levels) == {2, 9}
