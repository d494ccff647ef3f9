"""A client of the real server, without a key."""

from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import NO_TLS, Server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20, verify=NO_TLS) as client:
        yield client
