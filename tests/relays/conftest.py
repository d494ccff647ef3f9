"""Relays to the agents of a real server, with a key of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from a2a.agents import registry
from tasks_app.models import Relay
from tasks_app.relays import remotes
from tasks_app.relays.credentials import StoredCredentials
from tasks_app.relays.options import RelayOptions
from tasks_app.relays.registration import agent_of
from tests.conftest import Server

AddRelay = Callable[..., str]


@pytest.fixture
def add_relay(settings: Any, transactional_db: None) -> Iterator[AddRelay]:
    """Give a function that adds a relay to an address, and returns its name."""
    settings.A2A_OUTBOUND_LOOPBACK = True
    names: list[str] = []

    def add(url: str, key: str = "", **options: Any) -> str:
        relay = RelayOptions(name=f"relay-{len(names)}", url=url, **options)
        if key:
            sealed = StoredCredentials(kind="bearer", secret=key).sealed()
            Relay.objects.create(name=relay.name, credentials=sealed)
        registry.add(agent_of(relay, {}))
        names.append(relay.name)
        return relay.name

    yield add
    for name in names:
        registry._agents.pop(name)


@pytest.fixture
def to_agent(add_relay: AddRelay, server: Server) -> AddRelay:
    """Give a function that adds a relay to an agent of the server."""

    def add(agent: str, **options: Any) -> str:
        return add_relay(f"{server.url}/agents/{agent}/", key=server.owner, **options)

    return add


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Give a function that lets relays speak one version over one binding."""

    def speak(version: str, binding: str) -> None:
        monkeypatch.setattr(remotes, "VERSIONS", (version,))
        monkeypatch.setattr(remotes, "BINDINGS", (binding,))

    return speak
