"""A verb that changes nothing says so at each door, and records no act."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.models import Act, ApiKey, OAuthClient, OperatorToken, Principal, ServiceAccount, WrongLogins
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tests.operators.people import operator, program
from tests.support.commands import run
from tests.transports.admin.pages import messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def twice(*words: str) -> str:
    """Run a command twice. Return what the second one reports, which prints the same row and records no act."""
    first = run("a2a", *words)
    assert (first.code, first.errors) == (0, "")
    count = Act.objects.count()
    second = run("a2a", *words)
    assert (second.code, Act.objects.count()) == (0, count)
    assert [line["id"] for line in second.lines] == [line["id"] for line in first.lines]
    return second.errors.strip()


def test_a_key_and_a_token_are_revoked_once(olga: Principal) -> None:
    access.new_key("olga", tenant="acme")
    key = ApiKey.objects.get()
    assert twice("keys", "revoke", str(key.pk)) == f"Nothing was changed: key {key.pk} is revoked already."
    program(VIEWER)
    token = OperatorToken.objects.get()
    assert twice("operators", "revoke", str(token.pk)) == f"Nothing was changed: token {token.pk} is revoked already."


def test_accounts_and_clients_are_switched_once(olga: Principal, settings: Any) -> None:
    settings.A2A_OAUTH = True
    account = ServiceAccount.objects.create(issuer=CERTIFICATE, subject="dn:CN=x", principal=olga, scopes="*")
    client = OAuthClient.objects.create(principal=olga, client_id="c", name="ci", scopes="tasks:read")
    for noun, row in (("account", account), ("client", client)):
        for verb, state in (("disable", "disabled"), ("enable", "not disabled")):
            sentence = twice(f"{noun}s", verb, str(row.pk))
            assert sentence.startswith(f"Nothing was changed: {noun} {row.pk} is {state}")
    OAuthClient.objects.update(revoked_at=client.created_at)
    errors = run("a2a", "clients", "revoke", str(client.pk)).errors.strip()
    assert errors == f"Nothing was changed: client {client.pk} is revoked already."


def test_a_user_is_disabled_and_enabled_once() -> None:
    user, robot = operator(VIEWER, name="vera"), program(ADMINISTRATOR)
    for verb in ("disable", "enable"):
        assert twice("users", verb, "vera") == f"Nothing was changed: user vera is {verb}d already."
        count = Act.objects.count()
        answer = robot.post(f"users/{user.pk}/{verb}/")
        assert (answer.status_code, answer.json()["detail"]) == (409, f"The user is {verb}d already.")
        assert Act.objects.count() == count


def test_a_user_and_an_address_are_unlocked_once(admin_client: Client) -> None:
    robot, now = program(ADMINISTRATOR), clock.now()
    for kind, value in (("user", "ada"), ("address", "203.0.113.7")):
        row = WrongLogins.objects.create(kind=kind, value=value, running=5, locked_until=now, began_at=now, last_at=now)
        place = f"logins/{row.pk}/unlock/"
        (line,) = run("a2a", "logins", "unlock", value).lines
        assert line == {"kind": kind, "value": value, "done": "unlock"}
        count = Act.objects.count()
        again, answer = run("a2a", "logins", "unlock", value), robot.post(place)
        assert (again.code, again.lines) == (0, [{"kind": kind, "value": value}])
        assert again.errors.strip() == f"Nothing was changed: {kind} {value} is unlocked already."
        assert (answer.status_code, answer.json()["detail"]) == (409, f"The {kind} is unlocked already.")
        form = {"action": "unlock", "_selected_action": [row.pk]}
        page = admin_client.post(reverse("admin:tasks_app_wronglogins_changelist"), form, follow=True)
        assert f"{kind} {value}: unlocked already." in messages_of(page)
        assert Act.objects.count() == count
        WrongLogins.objects.filter(pk=row.pk).update(running=1)
        assert robot.post(place).status_code == 200, "a wrong login without a wait takes a try"
        assert Act.objects.count() == count + 1
