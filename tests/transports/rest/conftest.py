"""A client of REST."""

from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import NO_TLS, Server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.owner}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20, verify=NO_TLS) as client:
        yield client
