"""A server of ours with the conformance agent, and what each official client saw of it."""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import orjson
import pytest

from a2a.signatures import new_key
from tests.clients.environments import CLIENTS, Client, drive, missing
from tests.faults.nodes import KEY, Node
from tests.support.workers import NOT_TRIED

SETTINGS = {
    "A2A_AGENT_MODULES": "tests.conformance.agents,tests.support.agents",
    "A2A_DEFAULT_AGENT": "conformance",
    "TCK_STREAMING_TIMEOUT": "1",
    "A2A_CARD_KEY": new_key(),
    "A2A_PROVIDER": "Prüf & Söhne, 株式会社 😀 \u2028 \u007f",
    "A2A_PROVIDER_URL": "https://example.com/",
}
Saw = Callable[[str], Any]
Drive = Callable[[Client], dict[str, Any]]


@pytest.fixture(scope="session")
def conformance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("clients") / "data", **SETTINGS)
    try:
        asyncio.run(node.start())
        yield node
        assert asyncio.run(node.stop()) == 0, node.log
        assert "Traceback" not in node.log
    finally:
        node.kill()


@pytest.fixture(scope="session")
def driven(conformance: Node, pytestconfig: pytest.Config) -> Drive:
    """Let a client go through all its steps, once."""
    assert pytestconfig.cache
    folder = pytestconfig.cache.mkdir("clients")

    @cache
    def lines(client: Client) -> dict[str, Any]:
        printed = drive(client, folder, conformance.base, KEY)
        return {line["saw"]: line for line in map(orjson.loads, printed.strip().split("\n"))}

    return lines


@pytest.fixture(scope="session", params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    if why := missing(request.param):
        pytest.skip(f"{NOT_TRIED}: the official client {request.param.name}: {why}")
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def saw(client: Client, driven: Drive) -> Saw:
    """Return a function that gives what the client saw at a step."""

    def look(step: str) -> Any:
        line = driven(client)[step]
        assert "failed" not in line, line["failed"]
        return line["what"]

    return look
