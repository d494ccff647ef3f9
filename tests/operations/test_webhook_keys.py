"""Addresses of webhooks are sealed, and nothing is sent for a key that has ended."""

import asyncio
import hashlib
import hmac
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings as django_settings
from django.db import connection

from a2a.errors import InvalidParams
from a2a.requests import GetPushConfig, ListPushConfigs
from tasks_app import clock
from tasks_app.callers import access
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log import seal_addresses
from tasks_app.models import ApiKey, Delivery, Webhook
from tasks_app.operators.refusals import ActRefused
from tasks_app.outbound import policy
from tasks_app.sealing import has_same_url, site_of, unseal, url_of
from tasks_app.webhooks import enable, end_webhooks_of, secret_of
from tasks_app.webhooks.credentials import EXPIRED, REVOKED
from tasks_app.webhooks.keys import UNSENT, end_webhooks_without_credential
from tasks_app.webhooks.sending import Sender
from tests.conftest import Person, person
from tests.operations.asking import ask
from tests.operations.webhooks import OPS, WORKS, happens, hook, hooked, pump, states
from tests.support.hand import Hand
from tests.support.receiver import Receiver

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("loopback", "lanes"),
]
PATH = "/services/hunter2?key=hunter2"


@pytest.fixture
def second(owner: Person) -> Person:
    """Return another key of the same owner."""
    return person("owner", "home")


def stored_text() -> str:
    with connection.cursor() as cursor:
        cursor.execute("select * from tasks_app_pushconfig")
        return str(cursor.fetchall())


def of_former_version(task_id: str, url: str) -> None:
    """Make the row what the version before has written: the address in clear, secrets sealed as they were then."""
    former = Fernet(former_key())
    row = Webhook.objects.get(task_id=task_id)
    secret = former.encrypt(unseal(row.secret).encode()).decode()
    Webhook.objects.filter(pk=row.pk).update(url=url, address=None, key=None, caller_credential=None, secret=secret)


def former_key() -> bytes:
    purpose = b"taskdesk: secrets of webhooks"
    return urlsafe_b64encode(hmac.digest(django_settings.SECRET_KEY.encode(), purpose, hashlib.sha256))


def test_an_address_is_stored_sealed_and_shown_whole_to_its_owner_alone(owner: Person, there: Receiver) -> None:
    url = there.url + PATH
    task_id = hooked(owner, url, id="mine")
    assert "hunter2" not in stored_text()
    assert Webhook.objects.get().url == f"{there.url}/"
    assert ask(owner, GetPushConfig(task_id=task_id, id="mine")).url == url
    assert ask(owner, ListPushConfigs(task_id=task_id, page_size=10)).configs[0].url == url
    happens(task_id, WORKS)
    pump()
    assert [got.path for got in there.got] == [PATH]


def test_an_address_that_cannot_be_read_is_shown_as_its_site_and_waits(
    owner: Person, there: Receiver, settings: Any, hand: Hand
) -> None:
    task_id = hooked(owner, there.url + PATH, id="mine")
    happens(task_id, WORKS)
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key, which is long enough for it"
    pump()
    assert (states(), there.got) == ([(2, "waiting", 1)], [])
    assert "SECRET_KEY" in Delivery.objects.get().error
    assert ask(owner, GetPushConfig(task_id=task_id, id="mine")).url == f"{there.url}/"
    settings.SECRET_KEY_FALLBACKS = [former]
    hand.on(minutes=1)
    pump()
    assert [got.path for got in there.got] == [PATH]


def test_a_row_of_the_version_before_is_delivered_and_then_sealed(owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url + PATH, id="mine")
    of_former_version(task_id, there.url + PATH)
    secret = secret_of(Webhook.objects.get().pk, OPS)
    happens(task_id, WORKS)
    pump()
    assert "hunter2" in stored_text()
    assert bridge.do(Do(seal_addresses)) == 1
    assert bridge.do(Do(seal_addresses)) == 0
    assert "hunter2" not in stored_text()
    assert secret_of(Webhook.objects.get().pk, OPS) == secret
    happens(task_id, WORKS)
    pump()
    assert [got.path for got in there.got] == [PATH] * 2
    assert ask(owner, GetPushConfig(task_id=task_id, id="mine")).url == there.url + PATH


def test_the_sender_seals_what_is_in_clear(owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url + PATH)
    of_former_version(task_id, there.url + PATH)
    asyncio.run(Sender()._tidy())
    assert "hunter2" not in stored_text()


def test_the_version_before_cannot_send_to_a_part_of_an_address(owner: Person, there: Receiver) -> None:
    # A sender of that version unseals the secret first, and tries again later if it cannot.
    task_id = hooked(owner, there.url + PATH, id="mine")
    with pytest.raises(InvalidToken):
        Fernet(former_key()).decrypt(Webhook.objects.get().secret.encode())
    of_former_version(task_id, there.url + PATH)
    hook(owner, task_id, there.url + PATH, id="mine")
    with pytest.raises(InvalidToken):
        Fernet(former_key()).decrypt(Webhook.objects.get().secret.encode())


def test_an_address_written_by_the_former_version_over_a_sealed_one_counts(owner: Person) -> None:
    hooked(owner, "http://127.0.0.1:65001/former")
    Webhook.objects.update(url="http://127.0.0.1:65001/newer")
    row = Webhook.objects.get()
    assert url_of(row) == "http://127.0.0.1:65001/newer"
    assert has_same_url(row, Webhook(url="http://127.0.0.1:65001/newer"))
    assert not has_same_url(row, Webhook(url="http://127.0.0.1:65001/former"))


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://h.example/a/b?c#d", "https://h.example/"),
        ("https://h.example", "https://h.example/"),
        ("http://[::1]:8000?x", "http://[::1]:8000/"),
        ("https://h.example:8443#x", "https://h.example:8443/"),
    ],
)
def test_the_site_of_an_address_is_its_scheme_host_and_port(url: str, site: str) -> None:
    assert site_of(url) == site
    assert site_of(site) == site


def test_a_revoked_keys_webhooks_get_nothing_more_and_operators_see_why(
    owner: Person, second: Person, there: Receiver
) -> None:
    mine, other = hooked(owner, f"{there.url}/mine", id="a"), hooked(second, f"{there.url}/other")
    happens(mine, WORKS)
    happens(other, WORKS)
    key = ApiKey.objects.filter(pk=owner.caller.key_id)
    access.revoke(key)
    assert end_webhooks_of([key.get().pk]) == 1
    happens(mine, WORKS)
    happens(other, WORKS)
    pump()
    assert [got.path for got in there.got] == ["/other", "/other"]
    webhook = Webhook.objects.get(task_id=mine)
    assert (webhook.state, webhook.reason, webhook.due_at) == ("disabled", REVOKED, None)
    dead = Delivery.objects.get(task_id=mine)
    assert (dead.state, dead.error) == ("dead", UNSENT)
    with pytest.raises(ActRefused, match=REVOKED):
        enable(webhook.pk, OPS)


def test_an_owner_registers_again_with_another_key(owner: Person, second: Person, there: Receiver) -> None:
    task_id = hooked(owner, f"{there.url}/mine", id="a")
    access.revoke(ApiKey.objects.filter(pk=owner.caller.key_id))
    end_webhooks_of([owner.caller.key_id or 0])
    hook(second, task_id, f"{there.url}/mine", id="a")
    webhook = Webhook.objects.get()
    assert (webhook.state, webhook.key_id) == ("active", second.caller.key_id)
    happens(task_id, WORKS)
    pump()
    assert [got.path for got in there.got] == ["/mine"]


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_nothing_is_sent_for_a_key_that_ended_unnoticed(owner: Person, there: Receiver, how: str) -> None:
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS)
    ended = {"expires_at": clock.now()} if how == "expired" else {"revoked_at": clock.now()}
    ApiKey.objects.filter(pk=owner.caller.key_id).update(**ended)
    pump()
    assert (there.got, states()) == ([], [(2, "waiting", 0)])
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    assert Webhook.objects.get().reason == (EXPIRED if how == "expired" else REVOKED)
    assert states() == [(2, "dead", 0)]


def test_a_key_that_expires_later_is_good_until_then(owner: Person, there: Receiver) -> None:
    ApiKey.objects.update(expires_at=clock.now() + timedelta(hours=1))
    happens(hooked(owner, there.url), WORKS)
    assert bridge.do(Do(end_webhooks_without_credential)) == 0
    pump()
    assert len(there.got) == 1


def test_a_name_that_leads_inside_is_registered_like_one_that_is_unknown(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lookup(host: str, port: int, lookups: Any) -> Any:
        if host == "unknown.example":
            raise OSError
        return [(2, 1, 6, "", ("10.0.0.7", port))]

    monkeypatch.setattr(policy, "lookup", lookup)
    for number, name in enumerate(("inside.example", "unknown.example")):
        task_id = hooked(owner, f"https://{name}/x", id=f"w{number}")
        assert ask(owner, GetPushConfig(task_id=task_id, id=f"w{number}")).url == f"https://{name}/x"
        happens(task_id, WORKS)
    pump()
    by_host = {row.webhook.host: (row.state, row.error) for row in Delivery.objects.select_related("webhook")}
    assert by_host["inside.example"] == (
        "dead",
        "The address leads to an address that is not of the public network.",
    )
    assert by_host["unknown.example"][0] == "waiting"
    with pytest.raises(InvalidParams) as refused:
        hooked(owner, "https://10.0.0.7/x")
    assert "public network" in str(refused.value.violations)
