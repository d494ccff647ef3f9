"""Fixtures of the doors."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import config.urls  # noqa: F401  # before `speak` replaces the languages that it refers to
from a2a import languages
from a2a.languages import Languages
from tasks_app.callers.service_accounts import register
from tasks_app.exchanges.recording import recorder
from tasks_app.models import ServiceAccount
from tests.conftest import NO_TLS, PATIENCE, Server
from tests.support.cached_cards import forget_cards
from tests.support.issuer import AUDIENCE, SUBJECT, LocalIssuer, local_issuer


@pytest.fixture
def unchanged(server: Server) -> Iterator[None]:
    """Check at the end that nothing was stored."""
    before = server.row_counts()
    yield
    assert server.row_counts() == before


@pytest.fixture
def caller(server: Server) -> Iterator[httpx.Client]:
    """Return a client that posts JSON to the real server, with the owner's key."""
    headers = {"Authorization": f"Bearer {server.owner}", "Content-Type": "application/json"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20, verify=NO_TLS) as caller:
        yield caller


@pytest.fixture
def written_behind(lanes: None, fresh_keys: None) -> Iterator[None]:
    """Wait at the end until every exchange is stored."""
    yield
    assert recorder.drain(PATIENCE)


@pytest.fixture
def speak(monkeypatch: pytest.MonkeyPatch) -> Callable[[Languages], None]:
    """Return a function that lets the service speak other languages than its own."""

    def speak(others: Languages) -> None:
        monkeypatch.setattr(languages, "ALL", others)
        forget_cards()

    return speak


@pytest.fixture
def issuer(settings: Any) -> Iterator[LocalIssuer]:
    """Trust a local issuer, and return it."""
    with local_issuer() as issuer:
        settings.A2A_SCHEMES = ("oidc", "bearer", "key")
        settings.A2A_OUTBOUND_LOOPBACK = True
        settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE}}
        yield issuer


@pytest.fixture
def account(issuer: LocalIssuer) -> ServiceAccount:
    """Return the account of the subject of its tokens."""
    return register(issuer.url, SUBJECT, "robots", "home", "*", None)
