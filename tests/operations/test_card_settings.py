"""Settings of cards: the command that makes a key, and the checks that find mistakes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from a2a.signatures import ALGORITHMS, new_key, read_keys
from tasks_app.checks.cards import check_card_addresses, check_card_key, check_default_card
from tests.faults.nodes import manage
from tests.support.cached_cards import forget_cards
from tests.support.commands import text_of

pytestmark = pytest.mark.django_db
SECRET = new_key()


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    forget_cards()
    yield
    forget_cards()


def cardkey(*words: str) -> str:
    return text_of("a2a", "cardkey", *words)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_command_prints_a_new_key_each_time(algorithm: str) -> None:
    first, second = cardkey("--algorithm", algorithm), cardkey("--algorithm", algorithm)
    assert first.startswith("-----BEGIN PRIVATE KEY-----\n")
    assert first.endswith("-----END PRIVATE KEY-----\n")
    assert [key.algorithm for key in read_keys(first + second)] == [algorithm, algorithm]
    assert read_keys(cardkey())[0].algorithm == "ES256"


def test_the_command_makes_no_other_kind() -> None:
    with pytest.raises(CommandError, match="HS256"):
        cardkey("--algorithm", "HS256")


def test_an_unusable_key_is_reported_without_it(settings: Any) -> None:
    assert check_card_key() == []
    settings.A2A_CARD_KEY = SECRET
    assert check_card_key() == []
    for wrong in ("hunter2", SECRET[:-30], SECRET.replace("PRIVATE", "PUBLIC")):
        settings.A2A_CARD_KEY = wrong
        (error,) = check_card_key()
        assert error.id == "a2a.E010"
        assert "A2A_CARD_KEY cannot sign cards: " in error.msg
        assert "hunter2" not in error.msg
        assert SECRET.splitlines()[1] not in error.msg


@pytest.mark.parametrize("name", ["A2A_PUBLIC_URL", "A2A_PROVIDER_URL", "A2A_DOCUMENTATION_URL", "A2A_ICON_URL"])
@pytest.mark.parametrize(
    "url",
    [
        "agent.example",
        "//agent.example",
        "ftp://agent.example",
        "http://",
        "https:///x",
        "http://user:pw@a.example",
        "http://a.example:99999",
        "http://a.example:x",
        "http://a b.example",
        "javascript:alert(1)",
        "http://a.example/<x>",
        "http://é.example",
        "http://[::1",
    ],
)
def test_an_address_that_cannot_be_on_a_card_is_reported(settings: Any, name: str, url: str) -> None:
    settings.A2A_PROVIDER = "x" if name == "A2A_PROVIDER_URL" else ""
    setattr(settings, name, url)
    (error,) = check_card_addresses()
    assert (error.id, error.msg.partition(" ")[0]) == ("a2a.E011", name)


def test_good_addresses_are_not_reported(settings: Any) -> None:
    settings.A2A_PUBLIC_URL = "https://agent.example:8443/a2a"
    settings.A2A_PROVIDER, settings.A2A_PROVIDER_URL = "Example", "http://[::1]:8000/?a=b#c"
    settings.A2A_ICON_URL = "https://xn--bcher-kva.example/icon.png"
    assert check_card_addresses() == []
    settings.A2A_PUBLIC_URL = "https://agent.example/?x"
    assert [error.id for error in check_card_addresses()] == ["a2a.E011"]


@pytest.mark.parametrize(("name", "url"), [("Example", ""), ("", "https://example.com")])
def test_half_a_provider_is_reported(settings: Any, name: str, url: str) -> None:
    settings.A2A_PROVIDER, settings.A2A_PROVIDER_URL = name, url
    assert [error.id for error in check_card_addresses()] == ["a2a.E011"]


def test_an_unlisted_default_agent_is_reported(settings: Any) -> None:
    assert check_default_card() == []
    settings.A2A_DEFAULT_AGENT = "backstage"
    assert [error.id for error in check_default_card()] == ["a2a.E012"]
    settings.A2A_DEFAULT_AGENT = "nobody"
    assert check_default_card() == []


def test_settings_come_from_the_environment_and_an_odd_one_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "card.pem"
    file.write_text(SECRET)
    good = manage(tmp_path, "check", A2A_CARD_KEY_FILE=str(file), A2A_TRUST_FORWARDED="X-Forwarded")
    assert good.returncode == 0, good.stderr
    in_one_line = manage(tmp_path, "check", A2A_CARD_KEY=SECRET.replace("\n", "\\n"))
    assert in_one_line.returncode == 0, in_one_line.stderr
    odd = manage(tmp_path, "check", A2A_TRUST_FORWARDED="yes")
    assert odd.returncode == 1
    assert "A2A_TRUST_FORWARDED must be x-forwarded or forwarded, not 'yes'" in odd.stderr
    file.write_text(SECRET[:40])
    wrong = manage(tmp_path, "check", A2A_CARD_KEY_FILE=str(file))
    assert wrong.returncode == 1
    assert "a2a.E010" in wrong.stderr
