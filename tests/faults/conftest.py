"""Servers of ours as processes, in folders of their own, and PostgreSQL and Redis for those that share them."""

import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults import examiner
from tests.faults.clients import PATIENCE
from tests.faults.nodes import AGENTS, KEY, LEASE_SECONDS, Node, Redis, Worker, manage
from tests.support import servers

logging.getLogger("httpx").setLevel(logging.WARNING)  # A line for each call would hide the other lines.

SHORT = {"A2A_LEASE_SECONDS": str(LEASE_SECONDS), "A2A_SWEEP_SECONDS": "0.5", "A2A_POLL_SECONDS": "0.3"}
"""A lost worker is found out in seconds."""
SHARED = {"SECRET_KEY": "a secret that all processes of a production share", "ALLOWED_HOSTS": "127.0.0.1"}

_MIGRATE = """
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
User.objects.create_superuser("operator")
"""
NEW_KEY = f"from tasks_app.callers import access; access.new_key('caller', key='{KEY}')"

Start = Callable[..., Awaitable[Node]]


def examined(request: pytest.FixtureRequest, url: str) -> list[str]:
    """Return the findings of the doctor, but for those that the test is about.

    What a process that runs says of itself is as of its last sweep, and may be good at the next one.
    """
    expected = request.node.get_closest_marker("finds")
    words = expected.args if expected else ()
    deadline = time.monotonic() + PATIENCE
    folder = request.node.funcargs["tmp_path"]
    keys = [SHARED["SECRET_KEY"], *(file.read_text(encoding="utf-8").strip() for file in folder.glob("*/secret.key"))]
    folders = [str(files) for files in (*folder.glob("*/files"), folder / "files")]
    while True:
        found = [
            finding for finding in examiner.findings(url, keys, folders) if not any(word in finding for word in words)
        ]
        passing = [finding for finding in found if finding.startswith("process: ")]
        if not passing or passing != found or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


@pytest.fixture
def nodes(request: pytest.FixtureRequest) -> Iterator[list[Node]]:
    """Give the processes of the test; none outlives it."""
    made: list[Node] = []
    yield made
    for node in made:
        node.kill()
    # Databases on PostgreSQL are deleted by now. They were examined before that.
    for file in sorted({node.folder / "taskdesk.sqlite3" for node in made}):
        if file.exists():
            assert examined(request, f"sqlite:///{file}") == []


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database without keys and tasks, which others are copied from: migrating takes a second."""
    folder = tmp_path_factory.mktemp("migrated-file")
    migrate(folder)
    return folder / "taskdesk.sqlite3"


@pytest.fixture
def start(nodes: list[Node], tmp_path: Path, migrated_file: Path) -> Start:
    """Start a node on the test's folder: `run`, or `serve` beside it."""

    async def one(verb: str = "run", folder: str = "data", **settings: str) -> Node:
        node = Node(tmp_path / folder, verb, **AGENTS | settings)
        if "DATABASE_URL" not in settings and not (node.folder / migrated_file.name).exists():
            shutil.copy(migrated_file, node.folder)
        nodes.append(node)
        return await node.start()

    return one


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with servers.server(durable=False) as url:
        yield url


def migrate(folder: Path, **settings: str) -> None:
    """Migrate, and make an operator who cannot log in: a start makes none then, and digests no password."""
    shell(folder, _MIGRATE, **settings)


def shell(folder: Path, code: str, **settings: str) -> None:
    done = manage(folder, "shell", "--no-imports", "-c", code, **settings)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def empty_postgres(postgres_server: str) -> Iterator[str]:
    """Give a database without tables."""
    with servers.database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a migrated database without keys and tasks, which others are made from: migrating takes seconds."""
    with servers.database(postgres_server) as url:
        migrate(tmp_path_factory.mktemp("migrated-postgres"), DATABASE_URL=url)
        yield url


@pytest.fixture
def postgres(request: pytest.FixtureRequest, postgres_server: str, migrated_postgres: str) -> Iterator[str]:
    """Give a migrated database; what is in it at the end is examined."""
    with servers.database(postgres_server, migrated_postgres) as url:
        yield url
        assert examined(request, url) == []


@pytest.fixture
def cluster() -> Iterator[servers.Cluster]:
    """Give a PostgreSQL of the test's own, to be crashed."""
    with servers.cluster() as own:
        yield own


@pytest.fixture
async def pair(start: Start, postgres: str) -> tuple[Node, Node]:
    """Two processes on one database, with short leases. Keys are digested with the secret of the folder they share."""
    first = await start(DATABASE_URL=postgres, **SHORT)
    return first, await start("serve", DATABASE_URL=postgres, **SHORT)


@pytest.fixture
def redis() -> Iterator[Redis]:
    """Give a server of the test's own."""
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


@pytest.fixture(scope="session")
def production(postgres_server: str, migrated_postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a migrated database with a key, which others are made from."""
    folder = tmp_path_factory.mktemp("production")
    with servers.database(postgres_server, migrated_postgres) as url:
        shell(folder, NEW_KEY, DATABASE_URL=url, **SHARED)
        yield url


@contextmanager
def planted(request: pytest.FixtureRequest, nodes: list[Node], folder: Path, redis: Redis, url: str) -> Iterator[Plant]:
    """Give a plant on a migrated database; kill its processes and examine the database at the end."""
    settings = {
        "DATABASE_URL": url,
        "CELERY_BROKER_URL": redis.url,
        "REDIS_URL": redis.url,
        "A2A_GRACE_SECONDS": "1",
        **SHARED,
        **AGENTS,
        **SHORT,
    }
    yield Plant(folder, redis, nodes, settings)
    for node in nodes:
        node.kill()
    assert examined(request, url) == []


@pytest.fixture
def plant(
    request: pytest.FixtureRequest,
    nodes: list[Node],
    tmp_path: Path,
    postgres_server: str,
    production: str,
    redis: Redis,
) -> Iterator[Plant]:
    """Give a migrated database with a key, Redis as broker and for hints, and no processes yet."""
    with servers.database(postgres_server, production) as url, planted(request, nodes, tmp_path, redis, url) as found:
        yield found


@pytest.fixture
def crashable(
    request: pytest.FixtureRequest, nodes: list[Node], tmp_path: Path, cluster: servers.Cluster, redis: Redis
) -> Iterator[Plant]:
    """Give the same on a PostgreSQL of the test's own."""
    migrate(tmp_path, DATABASE_URL=cluster.url)
    shell(tmp_path, NEW_KEY, DATABASE_URL=cluster.url, **SHARED)
    with planted(request, nodes, tmp_path, redis, cluster.url) as found:
        yield found


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
