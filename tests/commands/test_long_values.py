"""Values of more than 1,000 characters that the operators' API and the admin take are arguments of commands, too."""

from typing import Any

import pytest

from tasks_app.callers.networks import MOST
from tasks_app.management.nouns.keys import LONGEST_NETWORKS
from tasks_app.models import Principal
from tasks_app.operators.texts import LONGEST_URL
from tests.support.commands import printed, run

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
LONG = "https://app.example/?x=".ljust(LONGEST_URL, "x")


def test_a_key_may_have_all_its_networks_in_their_longest_form() -> None:
    networks = " ".join(f"2001:0db8:0000:{number:04x}:0000:0000:0000:0000/64" for number in range(MOST))
    assert len(networks) > 2_000
    (line,) = printed("a2a", "keys", "create", "olga", "--networks", networks)
    assert len(line["networks"].split()) == MOST
    failed = run("a2a", "keys", "create", "olga", "--networks", "x" * (LONGEST_NETWORKS + 1))
    assert f"--networks: must have at most {LONGEST_NETWORKS:,} characters" in failed.errors


def test_a_client_may_have_a_long_redirect_address(settings: Any, olga: Principal) -> None:
    settings.A2A_OAUTH = True
    words = ("--principal", "olga", "--scopes", "tasks:read", "--grant", "authorization-code", "--redirect")
    (line,) = printed("a2a", "clients", "add", "ci", *words, LONG)
    assert line["redirect_uris"] == [LONG]
    for more in (("add", "two", *words), ("change", str(line["id"]), "--redirect")):
        failed = run("a2a", "clients", *more, f"{LONG}x")
        assert f"--redirect: must have at most {LONGEST_URL:,} characters" in failed.errors
    (line,) = printed("a2a", "clients", "change", str(line["id"]), "--redirect", LONG[:-1])
    assert line["redirect_uris"] == [LONG[:-1]]
