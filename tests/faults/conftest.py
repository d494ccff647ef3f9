"""Servers of ours as processes, in folders of their own, and PostgreSQL and Redis for those that share them."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import servers
from tests.faults import examiner
from tests.faults.nodes import AGENTS, KEY, Node, Redis, Worker, manage

logging.getLogger("httpx").setLevel(logging.WARNING)  # a line a call hides what matters

SHORT = {"A2A_LEASE_SECONDS": "2", "A2A_SWEEP_SECONDS": "0.5", "A2A_POLL_SECONDS": "0.3"}
"""A lost worker is found out in seconds."""

Start = Callable[..., Awaitable[Node]]


def examined(request: pytest.FixtureRequest, url: str) -> list[str]:
    """Return the findings of the doctor, but for those that the test is about."""
    expected = request.node.get_closest_marker("finds")
    words = expected.args if expected else ()
    return [finding for finding in examiner.findings(url) if not any(word in finding for word in words)]


@pytest.fixture
def nodes(request: pytest.FixtureRequest) -> Iterator[list[Node]]:
    """The processes of the test; none outlives it."""
    made: list[Node] = []
    yield made
    for node in made:
        node.kill()
    # Of those on PostgreSQL the databases are gone by now, and have been examined before.
    for file in sorted({node.folder / "taskdesk.sqlite3" for node in made}):
        if file.exists():
            assert examined(request, f"sqlite:///{file}") == []


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
def postgres(request: pytest.FixtureRequest, postgres_server: str) -> Iterator[str]:
    """An empty database; what is in it at the end is examined."""
    with servers.database(postgres_server) as url:
        yield url
        assert examined(request, url) == []


@pytest.fixture
def cluster() -> Iterator[servers.Cluster]:
    """A PostgreSQL of the test's own, to be crashed."""
    with servers.cluster() as own:
        yield own


@pytest.fixture
async def pair(start: Start, postgres: str) -> tuple[Node, Node]:
    """Two processes on one database, with short leases. Keys are digested with the secret of the folder they share."""
    first = await start(DATABASE_URL=postgres, **SHORT)
    return first, await start("serve", DATABASE_URL=postgres, **SHORT)


@pytest.fixture
def redis() -> Iterator[Redis]:
    """A server of the test's own."""
    server = Redis()
    server.start()
    yield server
    server.kill()


class Plant(NamedTuple):
    """A production: webs and workers are added to it, each with a data folder of its own."""

    folder: Path
    redis: Redis
    nodes: list[Node]
    settings: dict[str, str]

    async def web(self, **settings: str) -> Node:
        node = Node(self.folder / f"web-{len(self.nodes)}", "serve", **self.settings | settings)
        self.nodes.append(node)
        return await node.start()

    async def worker(self, *arguments: str, **settings: str) -> Worker:
        worker = Worker(self.folder / f"worker-{len(self.nodes)}", *arguments, **self.settings | settings)
        self.nodes.append(worker)
        await worker.start()
        return worker


SHARED = {"SECRET_KEY": "a secret that all processes of a production share", "ALLOWED_HOSTS": "127.0.0.1"}


@pytest.fixture(scope="session")
def migrated(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A migrated database with a key, which others are made from: migrating takes seconds."""
    folder = tmp_path_factory.mktemp("migrated")
    key = f"from tasks_app import access; access.new_key('caller', key='{KEY}')"
    with servers.database(postgres_server) as url:
        for arguments in (("migrate", "-v0"), ("shell", "--no-imports", "-c", key)):
            done = manage(folder, *arguments, DATABASE_URL=url, **SHARED)
            assert done.returncode == 0, done.stderr
        yield url


@pytest.fixture
def plant(
    request: pytest.FixtureRequest, nodes: list[Node], tmp_path: Path, postgres_server: str, migrated: str, redis: Redis
) -> Iterator[Plant]:
    """A migrated database with a key, Redis as broker and for hints, and no processes yet."""
    with servers.database(postgres_server, migrated) as url:
        settings = {
            "DATABASE_URL": url,
            "CELERY_BROKER_URL": redis.url,
            "REDIS_URL": redis.url,
            "A2A_GRACE_SECONDS": "1",
            **SHARED,
            **AGENTS,
            **SHORT,
        }
        yield Plant(tmp_path, redis, nodes, settings)
        for node in nodes:
            node.kill()
        assert examined(request, url) == []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests have measured."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    measured = [report for report in reports if report.when == "call" and report.user_properties]
    if measured:
        terminalreporter.section("measured")
    for report in measured:
        terminalreporter.line(report.nodeid)
        for name, value in report.user_properties:
            terminalreporter.line(f"    {name}: {value}")
