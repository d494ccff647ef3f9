"""Signatures of deliveries, and secrets that cannot be read."""

from typing import Any

import pytest
from django.db import connection
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from a2a.requests import DeletePushConfig, ListPushConfigs
from tasks_app import clock
from tasks_app.models import Delivery, Webhook
from tasks_app.webhooks import leases, secret_of
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.posting import headers
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.webhooks import OPS, WORKS, happens, hook, hooked, pump, states
from tests.support.hand import Hand
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


@pytest.mark.requirement("ACP-23")
def test_a_receiver_can_verify_what_it_gets(lanes: None, owner: Person, there: Receiver) -> None:
    happens(hooked(owner, there.url), WORKS)
    pump()
    secret = secret_of(Webhook.objects.get().pk, OPS)
    (got,) = there.got
    assert Verifier(secret).verify(got.raw, dict(got.headers)) == got.json
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(got.raw.replace(b"WORKING", b"FAILED "), dict(got.headers))
    assert got.headers["webhook-id"] == Delivery.objects.get().pk


def test_an_owner_may_bring_the_secret_and_it_is_never_sent(lanes: None, owner: Person, there: Receiver) -> None:
    secret = "whsec_" + "A" * 32
    happens(hooked(owner, there.url, schemes=("StandardWebhooks",), credentials=secret), WORKS)
    pump()
    (got,) = there.got
    Verifier(secret).verify(got.raw, dict(got.headers))
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
        known.append(secret_of(Webhook.objects.get().pk, OPS))

    again(url)
    again(url, token="another", schemes=("Bearer",), credentials="c")
    assert len(set(known)) == 1
    again(other)
    again(other, **own)
    again(other)
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    again(other)
    # A secret that cannot be decrypted is not used.
    settings.SECRET_KEY = "another key, which is long enough for it"
    again(other)
    assert len(set(known)) == 1 + len(known[2:])


def test_nothing_secret_can_be_read_from_the_database_or_by_its_owner(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = hooked(owner, there.url, token="canary-token", schemes=("Bearer",), credentials="canary-credentials")
    happens(task_id, WORKS)
    secret = secret_of(Webhook.objects.get().pk, OPS)
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
    (lease,) = leases.take("one", 1, Busy())
    told = headers(lease, "{}", clock.now())
    assert told["Content-Type"] == "application/json"
    assert "Authorization" not in told
    assert {told["A2A-Version"], told["A2A-Event-Sequence"]} == {"0.3", "2"}
