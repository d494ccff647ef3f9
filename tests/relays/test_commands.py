"""`manage.py a2a relays`: credentials are sealed, never shown, and used for the calls of the relay."""

import io
import sys
from typing import Any

import pytest
from django.core.management import CommandError

from tasks_app.models import Act, Relay
from tasks_app.relays.credentials import open_credentials
from tests.support.commands import printed, run

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
SECRET = "hunter2-the-secret"


@pytest.fixture(autouse=True)
def far(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_RELAYS = {"far": {"url": "https://user:word@far.example/agents/far?key=abc"}}
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))


def relays(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "relays", *words)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ([], "bearer"),
        (["--header", "X-API-Key"], "header"),
        (["--token-url", "https://far.example/token", "--client-id", "desk", "--scopes", "a b"], "oauth"),
        (["--token-url", "https://far.example/".ljust(2_000, "x"), "--client-id", "desk"], "oauth"),
    ],
)
def test_credentials_are_sealed_and_never_shown(options: list[str], kind: str) -> None:
    (stored,) = relays("login", "far", *options, "--reason", "new")
    assert stored["credentials"] == kind
    row = Relay.objects.get()
    assert SECRET not in row.credentials
    assert open_credentials(row.credentials).secret == SECRET
    (line,) = relays("list")
    assert line["credentials"] == kind
    act = Act.objects.get()
    assert (act.verb, act.reason) == ("login", "new")
    shown = f"{stored} {line} {list(Act.objects.values())}"
    assert [secret for secret in (SECRET, "word", "abc", row.credentials) if secret in shown] == []


def test_scopes_of_another_server_are_no_warning() -> None:
    login = run(
        "a2a", "relays", "login", "far", "--token-url", "https://x.example/", "--client-id", "d", "--scopes", "a b"
    )
    assert (login.errors, open_credentials(Relay.objects.get().credentials).scopes) == ("", ("a", "b"))


def test_scopes_of_another_server_may_be_as_long_as_in_the_api() -> None:
    scopes, login = (
        ["a" * 99] * 10,
        ("login", "far", "--token-url", "https://x.example/", "--client-id", "d", "--scopes"),
    )
    relays(*login, " ".join(scopes))
    assert open_credentials(Relay.objects.get().credentials).scopes == tuple(scopes)
    refusal = run("a2a", "relays", *login, "a" * 1_001).errors
    assert "argument --scopes: must have 1 to 1000 printable characters, not 1001" in refusal


def test_credentials_are_deleted() -> None:
    relays("login", "far")
    assert relays("logout", "far")[0]["credentials"] == ""
    assert Relay.objects.get().credentials == ""
    with pytest.raises(CommandError, match="has no credentials"):
        relays("logout", "far")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["login", "near"], "in A2A_RELAYS; there are: far. Run the command with the setting of the server."),
        (["login", "far", "--token-url", "https://far.example"], "belong together"),
        (["login", "far", "--token-url", "u", "--client-id", "c", "--header", "h"], "exclude each other"),
    ],
)
def test_a_wrong_command_line_is_explained(words: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        relays(*words)


def test_a_secret_that_no_header_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("grüße"))
    with pytest.raises(CommandError, match="no HTTP header can carry"):
        relays("login", "far")


def test_credentials_that_cannot_be_read_any_more_are_listed_so(settings: Any) -> None:
    relays("login", "far")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another secret of thirty-two characters", []
    assert relays("list")[0]["credentials"] == "unreadable"
