"""The handshake before the first delivery: a receiver that has not agreed gets no delivery, and loses none."""

import asyncio
import threading
from itertools import count
from typing import Any

import pytest

from tasks_app import webhooks
from tasks_app.models import Act, Delivery, Receiver, Webhook
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused
from tasks_app.outbound import policy
from tasks_app.upkeep.deletion import Deletion
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tasks_app.webhooks import handshake
from tasks_app.webhooks.agreement import is_needed, sender_name
from tests.conftest import PATIENCE, Person
from tests.operations.rows import chunk
from tests.operations.webhooks import DONE, OPS, WORKS, happens, hooked, pump, seqs, states
from tests.support.hand import Hand
from tests.support.receiver import Receiver as Site
from tests.support.receiver import Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]

AGREED = Reply(200, {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*", "Allow": "POST"})


@pytest.fixture(autouse=True)
def _demanded(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Demand handshakes, as in production. Every name leads to this machine."""
    settings.A2A_WEBHOOK_HANDSHAKE = True
    settings.A2A_PUBLIC_URL = "https://Tasks.example:8443/a"

    async def lookup(host: str, port: int, _: Any) -> policy.Answers:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(policy, "lookup", lookup)


def forget_old(hand: Hand) -> None:
    Deletion(ROW_KINDS["receivers"]).delete_next(hand(), alone=False)


@pytest.fixture
def url(there: Site) -> str:
    """Return an address of the receiver by a name that no setting lists."""
    return f"http://hooks.example:{there.server_address[1]}/secret?token=of-the-receiver"


def test_a_receiver_is_asked_once_and_then_gets_everything(lanes: None, owner: Person, there: Site, url: str) -> None:
    there.agreement = AGREED
    first, second = hooked(owner, url, token="a-token"), hooked(owner, url)
    happens(first, WORKS, chunk("one"), DONE)
    happens(second, WORKS)
    pump()
    (asked,) = there.asked
    assert asked.path == "/secret?token=of-the-receiver"
    assert asked.headers["webhook-request-origin"] == "tasks.example"
    assert "a-token" not in str(asked.headers)
    assert [got.seq for got in there.got if b"TASK_STATE_COMPLETED" in got.raw] == [4]
    assert len(there.got) == 4
    assert {got.headers["webhook-request-origin"] for got in there.got} == {"tasks.example"}
    assert {state for _, state, _ in states()} == {"delivered"}
    assert {attempt for _, _, attempt in states()} == {1}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(405),
        Reply(200, {"Allow": "POST"}),
        Reply(200, {"WebHook-Allowed-Origin": "another.example"}),
        Reply(200, {"WebHook-Allowed-Origin": "tasks.example.another.example"}),
        Reply(410),
        Reply(302, {"Location": "/", "WebHook-Allowed-Origin": "*"}),
        Reply(500, {"WebHook-Allowed-Origin": "*"}),
    ],
    ids=lambda reply: f"{reply.status} {''.join(reply.headers.values())}",
)
def test_a_site_that_has_not_agreed_gets_nothing_and_operators_see_why(
    lanes: None, owner: Person, there: Site, url: str, reply: Reply, hand: Hand
) -> None:
    there.agreement = reply
    task_id = hooked(owner, url)
    happens(task_id, WORKS, DONE)
    pump()
    assert there.got == []
    assert states() == [(2, "waiting", 1), (3, "waiting", 0)]
    (row,) = Webhook.objects.all()
    assert row.reason.startswith(
        f"held back: The receiver has not agreed to deliveries: to OPTIONS it answered {reply.status}"
    )
    assert Delivery.objects.get(seq=2).error in row.reason
    assert (row.state, row.due_at is None) == ("active", False)
    there.agreement = Reply(204, {"webhook-allowed-origin": " tasks.EXAMPLE "})
    hand.on(minutes=10)
    pump()
    assert seqs(there) == [2, 3]
    assert Webhook.objects.get().reason == ""


def test_many_webhooks_of_a_site_ask_once_a_minute(
    lanes: None, owner: Person, stranger: Person, there: Site, url: str, hand: Hand
) -> None:
    for person in (owner, owner, owner, stranger):
        happens(hooked(person, url), WORKS)
    pump()
    assert len(there.asked) == 2
    assert Receiver.objects.count() == 2
    hand.on(seconds=40)
    pump()
    assert len(there.asked) == 2
    hand.on(seconds=40)
    pump()
    assert len(there.asked) <= 4
    assert there.got == []


def test_tries_that_come_together_ask_once(
    service: None, owner: Person, there: Site, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS", PATIENCE)  # The gate opens when all have come.
    gate = threading.Event()
    there.agreement = AGREED._replace(until=gate)
    for _ in range(5):
        happens(hooked(owner, url), WORKS)
    gate.set()
    there.wait(5)
    assert len(there.asked) == 1


def test_a_try_that_looked_before_another_asked_does_not_ask_again(
    service: None, owner: Person, there: Site, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, shake_hands, looks, answered = handshake._find, handshake._shake_hands, count(), asyncio.Event()

    async def find_early(*pair: Any) -> Any:
        found = await find(*pair)
        if next(looks):
            await answered.wait()
            await asyncio.sleep(0.05)  # The handshake is over, too.
        return found

    async def shake_and_tell(*arguments: Any) -> Any:
        result = await shake_hands(*arguments)
        answered.set()
        return result

    monkeypatch.setattr(handshake, "_find", find_early)
    monkeypatch.setattr(handshake, "_shake_hands", shake_and_tell)
    gate = threading.Event()
    there.agreement = AGREED._replace(until=gate)
    for _ in range(3):
        happens(hooked(owner, url), WORKS)
    gate.set()
    there.wait(3)
    assert len(there.asked) == 1


def test_a_site_that_never_agrees_costs_its_deliveries_in_the_end(
    lanes: None, owner: Person, there: Site, url: str, hand: Hand, settings: Any
) -> None:
    happens(hooked(owner, url), WORKS)
    for _ in range(int(settings.A2A_DELIVERY_HOURS) + 10):
        pump()
        hand.on(hours=1)
    assert [state for _, state, _ in states()] == ["dead"]
    assert there.got == []
    assert len(there.asked) < 25


def test_another_owner_and_another_port_are_asked_apart(
    lanes: None, owner: Person, stranger: Person, there: Site, url: str
) -> None:
    there.agreement = AGREED
    happens(hooked(owner, url), WORKS)
    pump()
    happens(hooked(stranger, url), WORKS)
    pump()
    assert (len(there.asked), len(there.got)) == (2, 2)
    happens(hooked(owner, url.replace("hooks.example", "HOOKS.example")), WORKS)
    pump()
    assert (len(there.asked), len(there.got)) == (2, 3)
    assert set(Receiver.objects.values_list("site", flat=True)) == {url.partition("/secret")[0]}


def test_an_agreement_ends_and_is_asked_for_again(
    lanes: None, owner: Person, there: Site, url: str, hand: Hand, settings: Any
) -> None:
    there.agreement = AGREED
    task_id = hooked(owner, url)
    happens(task_id, WORKS)
    pump()
    hand.on(hours=settings.A2A_HANDSHAKE_DAYS * 24 + 1)
    there.agreement = Reply(405)
    happens(task_id, chunk("one"))
    pump()
    assert (len(there.asked), seqs(there)) == (2, [2])
    assert Receiver.objects.get().agreed_at is None


def test_answers_are_deleted_after_their_end(
    lanes: None, owner: Person, there: Site, url: str, hand: Hand, settings: Any
) -> None:
    happens(hooked(owner, url), WORKS)
    pump()
    hand.on(hours=settings.A2A_DELIVERY_HOURS - 1)
    forget_old(hand)
    assert Receiver.objects.count() == 1
    hand.on(hours=2)
    forget_old(hand)
    assert Receiver.objects.count() == 0


# -------------------------------------------------------------- who is asked


@pytest.mark.parametrize("setting", ["A2A_WEBHOOK_HOSTS", "A2A_OUTBOUND_HOSTS"])
def test_a_listed_host_is_not_asked(
    lanes: None, owner: Person, there: Site, url: str, settings: Any, setting: str
) -> None:
    setattr(settings, setting, ["Hooks.Example"])
    happens(hooked(owner, url), WORKS)
    pump()
    assert (there.asked, seqs(there)) == ([], [2])
    assert "webhook-request-origin" not in there.got[0].headers


def test_a_host_is_listed_by_name_address_or_network(settings: Any) -> None:
    settings.A2A_WEBHOOK_HOSTS = ["hooks.example", "192.0.2.7", "2001:db8::/32"]
    hosts = ("hooks.example", "192.0.2.7", "2001:db8::1", "more.hooks.example", "192.0.2.8", "2001:db9::1")
    assert [is_needed(host) for host in hosts] == [False, False, False, True, True, True]


def test_without_the_setting_nobody_is_asked(lanes: None, owner: Person, there: Site, url: str, settings: Any) -> None:
    settings.A2A_WEBHOOK_HANDSHAKE = False
    happens(hooked(owner, url), WORKS)
    pump()
    assert (there.asked, seqs(there), Receiver.objects.count()) == ([], [2], 0)


def test_a_forbidden_address_is_not_asked(lanes: None, owner: Person, there: Site, url: str, settings: Any) -> None:
    task_id = hooked(owner, url)
    settings.A2A_OUTBOUND_LOOPBACK = False
    happens(task_id, WORKS)
    pump()
    assert (there.asked, there.got) == ([], [])
    assert states() == [(2, "dead", 1)]


@pytest.mark.parametrize(
    ("public", "hosts", "name"),
    [
        ("https://agents.example/x", ["other.example"], "agents.example"),
        ("", [".example", "*", "agents.example"], "agents.example"),
        ("", ["*"], "127.0.0.1"),
    ],
)
def test_the_server_calls_itself_by_its_public_name(settings: Any, public: str, hosts: list[str], name: str) -> None:
    settings.A2A_PUBLIC_URL, settings.ALLOWED_HOSTS, settings.HOST = public, hosts, "127.0.0.1"
    assert sender_name() == name


# ----------------------------------------------------------------- operators


def test_an_operator_agrees_for_a_receiver_and_what_waits_is_sent(
    lanes: None, owner: Person, there: Site, url: str, hand: Hand, settings: Any
) -> None:
    task_id = hooked(owner, url)
    happens(task_id, WORKS, DONE)
    pump()
    webhooks.agree(str(Receiver.objects.get().pk), OPS)
    pump()
    assert seqs(there) == [2, 3]
    assert Act.objects.get().verb == "agree"
    with pytest.raises(ActRefused, match="already"):
        webhooks.agree(str(Receiver.objects.get().pk), OPS)
    # It has no end, and no later answer of the receiver changes it.
    hand.on(hours=settings.A2A_HANDSHAKE_DAYS * 48)
    forget_old(hand)
    happens(hooked(owner, url), WORKS)
    pump()
    assert len(there.got) == 3


def test_a_forgotten_receiver_is_asked_again(lanes: None, owner: Person, there: Site, url: str) -> None:
    there.agreement = AGREED
    happens(hooked(owner, url), WORKS)
    pump()
    webhooks.forget(str(Receiver.objects.get().pk), Operator(name="ops", door="command", reason="by mistake"))
    there.agreement = Reply(405)
    happens(hooked(owner, url), WORKS)
    pump()
    assert (len(there.asked), len(there.got)) == (2, 1)
    assert Act.objects.get().verb == "forget"


@pytest.mark.parametrize("id", ["7", "x", "", "\0", "9" * 30, "-1", "²"])
def test_an_unknown_receiver_is_refused(lanes: None, owner: Person, id: str) -> None:
    for act in (webhooks.agree, webhooks.forget):
        with pytest.raises(ActRefused, match="receivers list"):
            act(id, OPS)
