"""The doctor finds sealed secrets that cannot be opened under the SECRET_KEY of this deployment."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from tasks_app import clock
from tasks_app.models import OperatorDevice, Relay, SlackWorkspace, Webhook
from tasks_app.models.operators import decoy
from tasks_app.relays.credentials import StoredCredentials
from tasks_app.sealing import seal
from tests.commands.doctoring import doctor
from tests.conftest import Person
from tests.operations.webhooks import hooked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def make_webhook(owner: Person) -> None:
    hooked(owner, "http://127.0.0.1:65001/")
    Webhook.objects.update(due_at=clock.now())


def make_device(_: Person) -> None:
    user = User.objects.create_user("olga")
    OperatorDevice.objects.create(user=user, name="app", key=decoy(), sealed_key=seal("ab" * 20), confirmed=True)


def make_workspace(owner: Person) -> None:
    values = {"principal_id": owner.caller.owner_id, "scopes": "*", "created_at": clock.now()}
    SlackWorkspace.objects.create(team_id="T1", bot_token=seal("xoxb-1"), **values)


def make_relay(_: Person) -> None:
    Relay.objects.create(name="far", credentials=StoredCredentials(kind="bearer", secret="s").sealed())


@pytest.mark.parametrize(
    ("make", "subject"),
    [
        (make_webhook, "webhooks with waiting deliveries"),
        (make_device, "operators' second factors"),
        (make_workspace, "workspaces of Slack"),
        (make_relay, "relays"),
    ],
)
def test_secrets_of_another_secret_key_are_found(
    make: Callable[[Person], None], subject: str, owner: Person, settings: Any
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK, settings.A2A_RELAYS = True, {"far": {"url": "http://far/"}}
    make(owner)
    assert doctor()[0] == []
    former = settings.SECRET_KEY
    settings.SECRET_KEY = "another secret of thirty-two characters"
    (found,) = doctor()[0]
    assert (found["kind"], found["subject"]) == ("secret", subject)
    assert "1 of 1 cannot be opened" in found["problem"]
    settings.SECRET_KEY_FALLBACKS = [former]
    assert doctor()[0] == []
