"""Servers of ours as processes, in folders of their own, and PostgreSQL for those that share one."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.faults.nodes import AGENTS, Node

logging.getLogger("httpx").setLevel(logging.WARNING)  # a line a call hides what matters

SHORT = {"A2A_LEASE_SECONDS": "2", "A2A_SWEEP_SECONDS": "0.5", "A2A_POLL_SECONDS": "0.3"}
"""A lost worker is found out in seconds."""

Start = Callable[..., Awaitable[Node]]


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    """The processes of the test; none outlives it."""
    made: list[Node] = []
    yield made
    for node in made:
        node.kill()


@pytest.fixture
def start(nodes: list[Node], tmp_path: Path) -> Start:
    """Starts a node on the test's folder: `run`, or `serve` beside it."""

    async def one(verb: str = "run", folder: str = "data", **settings: str) -> Node:
        node = Node(tmp_path / folder, verb, **AGENTS | settings)
        nodes.append(node)
        return await node.start()

    return one


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with servers.server() as url:
        yield url


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """An empty database."""
    with servers.database(postgres_server) as url:
        yield url


@pytest.fixture
async def pair(start: Start, postgres: str) -> tuple[Node, Node]:
    """Two processes on one database, with short leases. Keys are digested with the secret of the folder they share."""
    first = await start(DATABASE_URL=postgres, **SHORT)
    return first, await start("serve", DATABASE_URL=postgres, **SHORT)
