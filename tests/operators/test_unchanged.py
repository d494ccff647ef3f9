"""A verb that changes nothing says so at each door, and records no act."""

from typing import Any

import pytest

from tasks_app.callers import access
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.models import Act, ApiKey, OAuthClient, OperatorToken, Principal, ServiceAccount
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tests.operators.people import operator, program
from tests.support.commands import run

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
