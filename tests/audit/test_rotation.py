"""Keys that are rotated, used from some networks only, and whose last use is stored."""

import asyncio
import re
import zlib
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError

from tasks_app import clock
from tasks_app.asgi.handler import _owner_of
from tasks_app.callers import access, last_use
from tasks_app.callers.last_use import LastUses
from tasks_app.callers.networks import admits, read_networks
from tasks_app.models import Act, ApiKey, Principal, RefusedCalls, Webhook
from tasks_app.operators.keys import rotate_key
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.transports.bodies import STRANGERS
from tasks_app.transports.http import Refusal
from tests.conftest import Person
from tests.database.locks import lock_row, needs_row_locks
from tests.operators.people import OPS, program
from tests.support.callers import find_caller
from tests.support.commands import printed
from tests.support.counts import store_counts
from tests.support.hand import Hand
from tests.transports.exchanges.calls import Post, call, new

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def keys(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "keys", *words)


def works(key: str) -> bool:
    return find_caller(key) is not None


def test_a_key_has_a_checksum_that_scanners_can_verify() -> None:
    (row,) = keys("create", "worker")
    match = re.fullmatch(r"tdk_([A-Za-z0-9_-]{43})([A-Za-z0-9]{6})", row["key"])
    assert match
    number = 0
    for digit in match[2]:
        number = number * 62 + DIGITS.index(digit)
    assert number == zlib.crc32(match[1].encode())


def test_a_key_without_a_checksum_works(owner: Person) -> None:
    old = access.new_key("owner", tenant="home", key="tdk_" + "x" * 43)
    assert works(old)


def test_a_rotated_key_has_the_same_rights_and_the_old_one_ends_after_the_overlap(hand: Hand) -> None:
    rights = ("--scopes", "tasks:read", "--networks", "10.0.0.0/8", "--language", "a2a-0.3", "--days", "30")
    (old,) = keys("create", "worker", "--tenant", "acme", "--name", "laptop", *rights)
    hand.on(days=10)
    (new,) = keys("rotate", "laptop", "--overlap", "2h", "--operator", "ann", "--reason", "yearly")
    assert new["key"] != old["key"]
    same = ("name", "principal", "tenant", "scopes", "networks", "language")
    assert [new[name] for name in same] == [old[name] for name in same]
    end = ApiKey.objects.get(pk=new["id"]).expires_at
    assert end
    assert abs(end - hand() - timedelta(days=30)) < timedelta(minutes=1)
    assert works(old["key"])
    assert works(new["key"])
    hand.on(hours=2, seconds=1)
    assert not works(old["key"])
    assert works(new["key"])
    acts = list(Act.objects.order_by("id").values_list("verb", "object_id", "operator", "reason"))[1:]
    assert acts == [("make", str(new["id"]), "ann", "yearly"), ("rotate", str(old["id"]), "ann", "yearly")]
    assert new["key"] not in str(list(Act.objects.values()))


def test_an_overlap_never_prolongs_a_key(hand: Hand) -> None:
    (old,) = keys("create", "worker", "--days", "1")
    keys("rotate", str(old["id"]), "--overlap", "7d")
    assert ApiKey.objects.get(pk=old["id"]).expires_at == hand() + timedelta(days=1)


def test_a_key_that_is_being_replaced_is_not_rotated_again() -> None:
    (old,) = keys("create", "worker", "--name", "nolife")
    (new,) = keys("rotate", "nolife")
    sentence = f"Key {old['id']} is being replaced by key {new['id']} already: rotate that one"
    with pytest.raises(CommandError, match=sentence):
        keys("rotate", str(old["id"]))
    answer = program(ADMINISTRATOR).post(f"keys/{old['id']}/rotate/")
    assert (answer.status_code, answer.json()["detail"]) == (409, f"{sentence}.")
    (newest,) = keys("rotate", str(new["id"]))
    assert newest["expires_at"] is None
    keys("revoke", str(newest["id"]))
    with pytest.raises(CommandError, match=f"replaced by key {newest['id']} already, which has ended: make another"):
        keys("rotate", str(new["id"]))


def test_the_name_of_a_key_that_is_being_replaced_is_refused_with_both_ids(hand: Hand) -> None:
    (old,) = keys("create", "worker", "--name", "laptop")
    (new,) = keys("rotate", "laptop", "--overlap", "2h")
    end = f"{hand() + timedelta(hours=2):%Y-%m-%d %H:%M} UTC"
    sentence = f"its id ({old['id']}, which key {new['id']} replaces at {end}; {new['id']})"
    with pytest.raises(CommandError, match=re.escape(sentence)):
        keys("rotate", "laptop")
    assert ApiKey.objects.count() == 2
    hand.on(hours=2)
    (newest,) = keys("rotate", "laptop")
    assert newest["id"] not in {old["id"], new["id"]}


def test_webhooks_go_on_with_the_new_key(owner: Person) -> None:
    now = clock.now()
    Webhook.objects.create(
        id="w",
        task_id="t",
        name="w",
        version="1.0",
        url="http://x/",
        host="x",
        created_at=now,
        updated_at=now,
        key_id=owner.caller.key_id,
        state="active",
    )
    row, _ = rotate_key(OPS, ApiKey.objects.get(pk=owner.caller.key_id))
    assert Webhook.objects.get().key_id == row.pk


def test_a_rotation_that_cannot_be_done_says_why(owner: Person) -> None:
    keys("create", "one", "--name", "twin")
    keys("create", "two", "--name", "twin")
    (ended,) = keys("create", "worker", "--name", "ended")
    keys("revoke", str(ended["id"]))
    for words, text in (
        (("twin",), "Several keys"),
        (("nobody",), "No valid key"),
        (("ended",), "No valid key"),
        (("twin", "--overlap", "1y"), "such as 30m"),
        (("twin", "--overlap", "99999d"), "Several keys"),
    ):
        with pytest.raises(CommandError, match=text):
            keys("rotate", *words)
    with pytest.raises(ValueError, match="ended already"):
        rotate_key(OPS, ApiKey.objects.get(pk=ended["id"]))
    with pytest.raises(ValueError, match="at most"):
        rotate_key(OPS, ApiKey.objects.get(pk=owner.caller.key_id), 1e9)


def test_the_api_rotates_a_key_for_those_who_may(owner: Person) -> None:
    path = f"keys/{owner.caller.key_id}/rotate/"
    assert program(VIEWER).post(path).status_code == 403
    answer = program(ADMINISTRATOR).post(path, overlap_hours=1)
    assert answer.status_code == 200, answer.content
    assert works(answer.json()["key"])
    for hours in (-1, 1e9, "nan"):
        wrong = program(ADMINISTRATOR).post(path, overlap_hours=hours)
        assert (wrong.status_code, wrong.json()["errors"][0]["where"]) == (400, "/overlap_hours")


# ------------------------------------------------------------- networks


@pytest.mark.parametrize(
    ("networks", "peer", "expected"),
    [
        ("", None, True),
        ("", "203.0.113.9", True),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8 2001:db8::/32", "2001:db8::7", True),
        ("192.0.2.7/32", "192.0.2.7", True),
        ("192.0.2.7/32", "192.0.2.8", False),
        ("10.0.0.0/8", None, False),
        ("10.0.0.0/8", "not an address", False),
        ("fe80::/10", "fe80::1%eth0", True),
    ],
)
def test_networks_admit_their_own_addresses(networks: str, peer: str | None, expected: bool) -> None:
    assert admits(networks, peer) is expected


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_networks_that_name_none_make_no_key(owner: Person, text: str) -> None:
    before = ApiKey.objects.count()
    with pytest.raises(CommandError, match=r"--networks: must name a network|names no network"):
        keys("create", "worker", "--networks", text)
    answer = program(ADMINISTRATOR).post("keys/", principal="worker", networks=text)
    assert answer.status_code == 400
    assert ApiKey.objects.count() == before


def test_networks_are_read_in_their_usual_form() -> None:
    assert read_networks("10.0.0.0/8, 192.0.2.7 2001:DB8::/32") == "10.0.0.0/8 192.0.2.7/32 2001:db8::/32"
    # Addresses of callers are written in IPv4 wherever they can be, so a network in another form would admit none.
    assert read_networks("::ffff:10.1.0.0/112 ::ffff:192.0.2.7 ::/0") == "10.1.0.0/16 192.0.2.7/32 ::/0"
    for text in ("10.0.0.1/8", "example.org", "10.0.0.0/33", " ".join(["10.0.0.0/8"] * 51)):
        with pytest.raises(ValueError, match=r"is not a network|50 networks"):
            read_networks(text)
        with pytest.raises(CommandError, match=r"is not a network|50 networks"):
            keys("create", "worker", "--networks", text)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
def test_a_key_from_another_network_is_refused_like_an_unknown_one(post: Post, settings: Any) -> None:
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    key = access.new_key("worker", tenant="home", networks="203.0.113.0/24")
    inside, outside = {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "198.51.100.7"}
    assert post(call("ListTasks", {}), key=key, **inside)[0] == 200
    refused = post(call("ListTasks", {}), key=key, **outside)
    assert refused == post(call("ListTasks", {}), key="tdk_unknown", **outside)
    assert refused[0] == 401
    # What a stranger writes into the header does not count.
    assert post(call("ListTasks", {}), key=key, **{"X-Forwarded-For": "203.0.113.7, 198.51.100.7"})[0] == 401
    assert post(b"", key=key, path="/ws/ticket", **outside)[0] == 401
    assert post({"taskId": "t"}, key=key, path="/links", **outside)[0] == 401
    store_counts()
    row = RefusedCalls.objects.get(caller="worker")
    assert (row.reason, row.count, row.last_peer) == ("OTHER_NETWORK", 4, "198.51.100.7")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service", "fresh_keys")
def test_the_body_of_a_key_from_another_network_is_not_its_owners(settings: Any) -> None:
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    key = access.new_key("worker", tenant="home", networks="203.0.113.0/24")

    def owner_of(address: str, *, required: bool = False) -> int:
        headers = [(b"x-api-key", key.encode()), (b"x-forwarded-for", address.encode())]
        scope = {"type": "http", "method": "POST", "path": "/jsonrpc", "headers": headers, "client": ["127.0.0.1", 1]}
        return asyncio.run(_owner_of(scope, required, 0))

    assert owner_of("198.51.100.7") == STRANGERS
    assert owner_of("203.0.113.7") == Principal.objects.get(name="worker").pk
    with pytest.raises(Refusal) as refused:
        owner_of("198.51.100.7", required=True)
    assert refused.value.status == 401


# ------------------------------------------------------------- last use


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
def test_the_last_use_of_a_key_is_stored(post: Post, owner: Person, colleague: Person) -> None:
    store_counts()
    began = clock.now()
    post(new(agent="quick-function"))
    store_counts()
    used = ApiKey.objects.get(pk=owner.caller.key_id).last_used_at
    assert used
    assert began <= used <= clock.now()
    assert ApiKey.objects.get(pk=colleague.caller.key_id).last_used_at is None
    assert {row["last_used_at"] is None for row in keys("list")} == {True, False}


def test_a_last_use_is_written_once_a_minute_at_most(owner: Person, hand: Hand) -> None:
    pk = owner.caller.key_id
    assert pk
    uses, start = LastUses(), hand()
    uses.note(pk)
    uses.flush()
    for seconds, written in ((59, False), (1, True), (30, False), (31, True)):
        hand.on(seconds=seconds)
        assert bool(last_use.store({pk: hand()})) is written
    assert ApiKey.objects.get(pk=pk).last_used_at == start + timedelta(seconds=121)


@pytest.mark.django_db(transaction=True)
@needs_row_locks
def test_a_locked_key_is_skipped_and_waits_for_nothing(owner: Person, lanes: None) -> None:
    pk = owner.caller.key_id
    assert pk
    with lock_row("apikey", "id", str(pk)):
        assert last_use.store({pk: clock.now()}) == 0
