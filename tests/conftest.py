"""Fixtures of all tests: short times, three people, the service in this process, and a real server."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from asgiref.sync import AsyncToSync
from django.conf import settings as django_settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis
from msgspec.structs import replace

import tests.support.agents  # noqa: F401  # registers them
from a2a.dialects.json.json_1_0 import document, dumps, encode_status, event_of
from a2a.documents import EventDocument
from a2a.events import apply
from tasks_app import clock
from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers import access
from tasks_app.callers.access import Caller
from tasks_app.callers.last_use import last_uses
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import ReadTask, read_many
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.refusals import tally
from tasks_app.limits import strangers
from tasks_app.limits.rate_limits import limits
from tasks_app.models import Event, Principal, Task, Tenant
from tasks_app.process import services
from tasks_app.transports import keys
from tests.support import certificates, databases, forgetting, sessions, settings, static_files
from tests.support.callers import find_caller
from tests.support.hand import Hand
from tests.support.lanes import inline_lanes
from tests.support.orphans import end_with_tests
from tests.support.servers import NO_TLS, PATIENCE, free_port, postgres

hypothesis.register_profile(
    "taskdesk",
    deadline=None,  # the machine is shared
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
hypothesis.load_profile("taskdesk")

ROOT = Path(__file__).resolve().parent.parent
TIMES = {
    "A2A_LEASE_SECONDS": 2.0,
    "A2A_SWEEP_SECONDS": 0.5,
    "A2A_POLL_SECONDS": 0.5,
    "A2A_GRACE_SECONDS": 0.5,
    "A2A_WAIT_SECONDS": 5.0,
    "A2A_PING_SECONDS": 1.0,
    "A2A_BODY_SECONDS": 3.0,
    "A2A_HEADER_SECONDS": 3.0,
}
CALM = {"A2A_SWEEP_SECONDS": 5.0}
"""The pause between sweeps of servers that a whole run shares: with a short one each takes a twentieth of a core."""
SLACK = 8.0
"""Seconds by which a busy machine may be late. With the short times a deadline still comes before the usual one."""

START_SECONDS = 3 * PATIENCE
"""Seconds within which a server of many tests starts. It makes its whole database, beside the starts of others."""

for _name, _value in TIMES.items():
    setattr(django_settings, _name, _value)
# Passwords of test people need no protection, and a good digest takes a second.
django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
settings.prepare()
certificates.prepare()
databases.prepare()
sessions.prepare()
static_files.prepare()


def until(found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return the first true value of the function. Fail when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.01)
    return value


# ------------------------------------------------------------------- people


class Person(NamedTuple):
    """A person with an API key."""

    key: str
    caller: Caller


def person(name: str, tenant: str, scopes: str = "*") -> Person:
    key = access.new_key(name, tenant=tenant, scopes=scopes)
    caller = find_caller(key)
    assert caller
    return Person(key, caller)


@pytest.fixture
def owner(db: None) -> Person:
    return person("owner", "home")


@pytest.fixture
def colleague(db: None) -> Person:
    """Return a person of the owner's tenant."""
    return person("colleague", "home")


@pytest.fixture
def stranger(db: None) -> Person:
    """Return a person of another tenant."""
    return person("stranger", "abroad")


@pytest.fixture
def olga(db: None) -> Principal:
    """Return a principal without a key, whose rows operators look at."""
    return Principal.objects.create(tenant=Tenant.objects.get_or_create(name="acme")[0], name="olga")


# -------------------------------------------------------------- singletons


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    """Stop every clock until the test moves this hand."""
    hand = Hand()
    monkeypatch.setattr(clock, "now", hand)
    monkeypatch.setattr(clock, "shared", hand)
    return hand


@pytest.fixture
def fresh_keys() -> Iterator[None]:
    """Forget the callers of keys, which a process trusts for a second, before and after the test."""
    keys._cache.clear()
    yield
    keys._cache.clear()


# -------------------------------------------------------------- the service


@pytest.fixture(autouse=True)
def no_services() -> Iterator[None]:
    """Fail a test that leaves background services running: they would work on the database of the tests after it.

    An application starts them with its first call, so a test of one needs the fixture `service`.
    """
    yield
    is_clean = not services._running
    services.stop()
    assert is_clean, "the test has left background services running: it needs the fixture `service`"


@pytest.fixture(autouse=True)
def no_executor() -> None:
    """Forget the executor of a call whose coroutine was collected before its end.

    Its end restores the context of the call, wherever the collection takes place, and no call after it could use
    another thread.
    """
    AsyncToSync.executors.current = None


@pytest.fixture(autouse=True)
def open_doors() -> None:
    """Take work again: the end of a service in an earlier test is not the end of the process."""
    readers.draining = False


@pytest.fixture(autouse=True)
def no_strangers() -> None:
    """Forget the refused calls of earlier tests, which all come from one address."""
    limits.forget()
    limits.rules, limits.edition = {}, None
    strangers.failures.clear()
    strangers.calls.clear()
    tally.waiting, tally.totals, tally.loop = {}, {}, None


@pytest.fixture(autouse=True)
def no_records() -> None:
    """Forget calls of earlier tests, and counts, that nothing has stored: this test would store them among its own."""
    recorder.queue.clear()
    recorder.loop = None
    refused_calls._tallies.clear()
    last_uses._times.clear()


@pytest.fixture(autouse=True)
def fresh_process() -> None:
    """Forget owners, floods and troubles of earlier tests."""
    forgetting.forget()


@pytest.fixture(autouse=True)
def inline_bridge(request: pytest.FixtureRequest) -> Iterator[None]:
    """Do work on the spot, because no lane sees the open transaction of a test."""
    marker = request.node.get_closest_marker("django_db")
    transactional = "transactional_db" in request.fixturenames or (marker and marker.kwargs.get("transaction"))
    if transactional or (marker is None and "db" not in request.fixturenames):
        yield
        return
    with inline_lanes():
        yield


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check at the end that every log, folded, is what reading its task gives, and what the row says."""
    request.getfixturevalue("db")
    yield
    for row in Task.objects.all():
        replayed(row)


def replayed(row: Task) -> None:
    events = list(Event.objects.filter(task_id=row.id).order_by("seq"))
    assert [event.seq for event in events] == list(range(1, row.last_seq + 1)), "the numbers have gaps"
    folded = None
    for event in events:
        stored = EventDocument(
            task_id=row.id, context_id=row.context_id, seq=event.seq, kind=event.kind, payload=event.payload
        )
        folded = apply(folded, event_of(stored))
    assert folded is not None
    assert row.size == sum(event.size for event in events), "the size is not that of the events"
    (read,) = read_many([ReadTask(task_id=row.id, sight=None)])
    assert read is not None
    assert read.document == document(folded, row.last_seq, row.agent)
    (brief,) = read_many([ReadTask(task_id=row.id, sight=None, history=False)])
    assert brief is not None
    assert brief == replace(read, document=replace(read.document, history=None))
    assert row.state == folded.status.state.value
    assert row.status == dumps(encode_status(folded.status))
    assert abs(row.status_at - folded.status.timestamp) < timedelta(milliseconds=1)
    assert [event.state for event in events if event.state][-1] == row.state


@pytest.fixture
def lanes(transactional_db: None, replay: None) -> Iterator[None]:
    """Run the lanes, without the background work."""
    yield
    bridge.stop()


@pytest.fixture
def new_sessions() -> Iterator[None]:
    """Have every connection of the test open a session of its own. Ask for it before the lanes."""
    with sessions.new_sessions():
        yield


@pytest.fixture
def service(transactional_db: None, replay: None, fresh_keys: None) -> Iterator[None]:
    """Run everything that a process of the service runs, apart from its doors."""
    readers.loop, readers.poller, readers.waiting = None, None, {}
    services.start()
    yield
    services.stop()


# ----------------------------------------------------------- a real server


class Server(NamedTuple):
    """`manage.py run`, with keys for three people."""

    url: str
    port: int
    owner: str
    colleague: str
    stranger: str
    database: str
    """A PostgreSQL URL, or the path of the SQLite file."""
    log: Path

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return rows of the server's database."""
        if self.database.startswith("postgres"):
            with psycopg.connect(self.database) as connection:
                return list(connection.execute(query))  # type: ignore[arg-type]
        connection = sqlite3.connect(self.database, timeout=PATIENCE)
        try:
            return list(connection.execute(query))
        finally:
            connection.close()

    def execute(self, statement: str) -> None:
        """Change rows of the server's database."""
        if self.database.startswith("postgres"):
            with psycopg.connect(self.database) as connection:
                connection.execute(statement)  # type: ignore[arg-type]
            return
        connection = sqlite3.connect(self.database, timeout=PATIENCE)
        try:
            with connection:
                connection.execute(statement)
        finally:
            connection.close()

    def row_counts(self) -> dict[str, int]:
        """Count the rows that calls make, apart from their records. Agents of earlier tests may still be at work."""
        events = "event where actor not in ('agent', 'runner', 'sweeper')"
        tables = ("task", events, "turn", "idempotencykey")
        return {table: self.rows(f"select count(*) from tasks_app_{table}")[0][0] for table in tables}  # noqa: S608


_PEOPLE = """
from tasks_app.callers import access
from tasks_app.limits import strangers
access.new_key("developer", key="{owner}")
access.new_key("colleague", key="{colleague}")
access.new_key("stranger", tenant="abroad", key="{stranger}")
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@contextmanager
def running_server(folder: Path, *, script: str = "", **more: str) -> Iterator[Server]:
    """Run a server with further environment variables. The script makes further rows in its database."""
    port = free_port()
    keys = {name: f"tdk_key-of-the-{name}-at-the-real-server" for name in ("owner", "colleague", "stranger")}
    with ExitStack() as stack:
        url = stack.enter_context(postgres(durable=False)) if on_postgres() else ""
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        environment |= {"PORT": str(port), "DATA_DIR": str(folder), "DEV_KEY": keys["owner"]}
        environment |= {"A2A_AGENT_MODULES": "tests.support.agents", "PYTHONWARNINGS": "default"}
        environment |= {name: str(value) for name, value in (TIMES | CALM).items()} | more
        if url:
            environment["DATABASE_URL"] = url
        log = folder / "log"
        process = stack.enter_context(_running([sys.executable, "manage.py", "run"], environment, log))
        found = Server(
            f"http://127.0.0.1:{port}", port, **keys, database=url or str(folder / "taskdesk.sqlite3"), log=log
        )
        try:
            until(lambda: _ready(process, found), "the server is ready", START_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()}") from None
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", _PEOPLE.format(**keys) + script]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=START_SECONDS)
        yield found
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0, log.read_text()


@contextmanager
def _running(command: list[str], environment: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process, and kill it at the end whatever happens."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    end_with_tests(process)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _ready(process: "subprocess.Popen[bytes]", server: Server) -> bool:
    assert process.poll() is None, server.log.read_text()
    try:
        # While it starts, a refused connection costs a hundredth of a client.
        socket.create_connection(("127.0.0.1", server.port), 5).close()
        return httpx.get(f"{server.url}/readyz", timeout=5, verify=NO_TLS).status_code == 200
    except (OSError, httpx.TransportError):
        return False
