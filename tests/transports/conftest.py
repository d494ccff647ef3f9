"""What tests of the doors share."""

from collections.abc import Iterator

import httpx
import pytest

from tasks_app.exchanges.recording import recorder
from tasks_app.transports import keys
from tests.conftest import NO_TLS, PATIENCE, Server


@pytest.fixture
def unchanged(server: Server) -> Iterator[None]:
    """Nothing is stored."""
    before = server.stored()
    yield
    assert server.stored() == before


@pytest.fixture
def caller(server: Server) -> Iterator[httpx.Client]:
    """Posts JSON to the real server, with the owner's key."""
    headers = {"Authorization": f"Bearer {server.owner}", "Content-Type": "application/json"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20, verify=NO_TLS) as caller:
        yield caller


@pytest.fixture
def written_behind(lanes: None) -> Iterator[None]:
    keys._cache.clear()
    yield
    assert recorder.drain(PATIENCE)
    keys._cache.clear()
