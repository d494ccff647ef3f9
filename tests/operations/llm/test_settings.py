"""Settings of the agent."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client

from tasks_app.agents import examples
from tasks_app.checks.agents import check_llm
from tests.conftest import ROOT, Person
from tests.operations.asking import sent
from tests.operations.llm.endpoint import KEY, Endpoint, sentence
from tests.support.cached_cards import forget_cards
from tests.support.servers import COMMAND_SECONDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def cards() -> tuple[int, str]:
    """Return the status of the agent's own card, and the card of the default agent."""
    client = Client()
    forget_cards()  # Outside of tests agents do not change while the process lives.
    own = client.get("/agents/llm/.well-known/agent-card.json").status_code
    whole = client.get("/.well-known/agent-card.json").content.decode()
    forget_cards()
    return own, whole


def test_it_is_on_the_card_when_it_is_configured(endpoint: Endpoint) -> None:
    status, card = cards()
    assert status == 200
    assert '"id":"chat"' in card


@pytest.mark.parametrize(("url", "model"), [("", ""), ("http://127.0.0.1/v1", ""), ("", "small-model")])
def test_it_is_not_on_the_card_unless_it_is_configured(settings: Any, url: str, model: str) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = url, model
    examples.offer_llm()
    status, card = cards()
    assert status == 404
    assert '"id":"chat"' not in card


@pytest.mark.parametrize(
    ("environment", "there"),
    [({}, False), ({"LLM_BASE_URL": "http://127.0.0.1/v1/", "LLM_MODEL": "small-model"}, True)],
    ids=["without", "with"],
)
def test_the_environment_decides_whether_it_is_there(environment: dict[str, str], there: bool) -> None:
    code = (
        "import django; django.setup(); from django.conf import settings; from a2a.agents import registry; "
        "print(registry.get('llm') is not None, settings.LLM_BASE_URL)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLM_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        env=clean | {"DJANGO_SETTINGS_MODULE": "config.settings"} | environment,
    )
    assert done.stdout.split() == ([str(there), "http://127.0.0.1/v1"] if there else [str(there)])


@pytest.mark.parametrize(
    ("url", "model", "key", "said"),
    [
        ("", "", "", None),
        ("https://model.example/v1", "small-model", KEY, None),
        ("https://model.example/v1", "", "", "LLM_MODEL is not set"),
        ("", "small-model", "", "LLM_BASE_URL is not set"),
        ("model.example/v1", "small-model", "", "LLM_BASE_URL must be"),
        ("ftp://model.example", "small-model", "", "LLM_BASE_URL must be"),
        ("http://model.example:port", "small-model", "", "LLM_BASE_URL must be"),
        ("https://", "small-model", "", "LLM_BASE_URL must be"),
        (f"https://me:{KEY}@model.example/v1", "small-model", "", "LLM_BASE_URL must be"),
        (f"https://model.example/v1?key={KEY}", "small-model", "", "LLM_BASE_URL must be"),
        ("https://model.example/v1", "small-model", f"{KEY}\nX", "LLM_API_KEY has characters"),
        ("https://model.example/v1", "small-model", f"{KEY}é", "LLM_API_KEY has characters"),
    ],
)
def test_a_check_names_what_is_wrong_with_the_settings(
    settings: Any, url: str, model: str, key: str, said: str | None
) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL, settings.LLM_API_KEY = url, model, key
    found = check_llm()
    assert [error.id for error in found] == (["a2a.E003"] if said else [])
    assert all(said and said in error.msg and KEY not in error.msg for error in found)


def test_a_key_that_cannot_be_sent_is_never_shown(owner: Person, endpoint: Endpoint, settings: Any) -> None:
    settings.LLM_API_KEY = f"{KEY}\nX"
    task = sent(owner, "hello", "llm")
    assert sentence(task) == "The language model is not configured properly on this server."
    assert endpoint.calls == []
