"""The shapes that are measured: what each needs is started here, on loopback, and stopped here, by its process id."""

import secrets
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import orjson
import psycopg

from tests.bench import load
from tests.bench.processes import BenchError, Process, cores, on
from tests.faults import nodes
from tests.support import servers

ORDERS = {signal.SIGINT, signal.SIGTERM}
UNBOUNDED = dict.fromkeys(("A2A_OWNER_TASKS", "A2A_AGENT_TASKS", "A2A_TASKS"), "1000000")
"""Settings with which one caller queues all that the server takes."""
USABLE = cores()
"""The cores of this process before it pins anything. Inside a deployment it keeps to those of the load, and a second
deployment beside the first needs the server's core again."""
CALM_SECONDS = 120.0
"""After which a queue that does not empty is said to be stuck."""


class Shape(NamedTuple):
    """A way to run Taskdesk."""

    title: str
    postgres: bool = True
    worker: bool = False
    """With Redis; all processes then share both cores."""


SHAPES = {
    "sqlite": Shape("SQLite, one process", postgres=False),
    "postgres": Shape("PostgreSQL, one process"),
    "worker": Shape("PostgreSQL, Redis, one web and one worker process", worker=True),
}


class Pinning(NamedTuple):
    """Which cores whose processes may use; empty sets where nothing is pinned."""

    server: frozenset[int] = frozenset()
    rest: frozenset[int] = frozenset()

    def __str__(self) -> str:
        if not self.server:
            return "nothing pinned"
        return f"server on core {min(self.server)}, load and databases on core {min(self.rest)}"


def pinning(shape: Shape, usable: frozenset[int]) -> Pinning:
    """Return one core for the server and another for all else, where one process is measured and there are two."""
    if shape.worker or len(usable) < 2:
        return Pinning()
    first, second, *_ = sorted(usable)
    return Pinning(frozenset({first}), frozenset({second}))


class Deployment:
    """A server, a worker if the shape has one, their database, and a key to them."""

    def __init__(self, shape: Shape, pins: Pinning, folder: Path, settings: dict[str, str]) -> None:
        self.shape, self.pins, self.folder = shape, pins, folder
        self.port = servers.free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.settings = settings | {
            "PORT": str(self.port),
            "SECRET_KEY": secrets.token_hex(32),
            "ALLOWED_HOSTS": "127.0.0.1",
            "A2A_AGENT_MODULES": "tests.bench.agents",
            "A2A_DEFAULT_AGENT": "bench-quick",
            "A2A_GRACE_SECONDS": "2",
        }
        self.processes: dict[str, Process] = {}
        self.answers = 0
        """The number of calls that made a task since the database was made."""
        self.manage("migrate", "--verbosity=0")
        self.key = self.new_key("bench")

    def new_key(self, principal: str) -> str:
        return str(orjson.loads(self.manage("a2a", "keys", "create", principal))["key"])

    def manage(self, *arguments: str) -> str:
        done = nodes.manage(self.folder, *arguments, **self.settings)
        if done.returncode:
            raise BenchError(f"manage.py {' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
        return done.stdout

    def start(self, **settings: str) -> None:
        """Start the processes, and return when a task has gone all the way through them."""
        with on(self.pins.server):
            server = self._run("serve", settings)
            worker = self._run("worker", settings) if self.shape.worker else None
        server.until(self._answers, "an answer")
        if worker:
            worker.until(lambda: "ready" in worker.tail(), "the line that it is ready")
        calls = load.send("bench-queued", wait=True, expected="TASK_STATE_COMPLETED")
        proof = load.once(self.base, self.key, calls)
        if proof.errors:
            raise BenchError(f"the first task did not complete: {proof.example}\n{(worker or server).tail()}")
        self.answers += 1

    def _run(self, verb: str, settings: dict[str, str]) -> Process:
        self.processes[verb] = Process(verb, self.folder, self.settings | settings)
        return self.processes[verb]

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.base}/readyz", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def check(self) -> None:
        """Raises BenchError if a process has ended by itself: what is measured after that says nothing."""
        for verb, process in self.processes.items():
            if (code := process.process.poll()) is not None:
                raise BenchError(f"manage.py {verb} ended with {code} under load:\n{process.tail()}")

    def stop(self) -> None:
        """The server first: it may still offer work."""
        for verb in list(self.processes):
            self.processes.pop(verb).stop()

    @property
    def runner(self) -> Process:
        """The process in which queued agents run."""
        return self.processes["worker" if self.shape.worker else "serve"]

    def states(self) -> dict[str, int]:
        """Count the tasks in each state."""
        return dict(self._rows("select state, count(*) from tasks_app_task group by state"))

    def ids(self, limit: int) -> list[str]:
        """Return the ids of completed tasks."""
        rows = self._rows(f"select id from tasks_app_task where state = 'completed' limit {limit:d}")  # noqa: S608
        return [str(UUID(row[0])) for row in rows]

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        if url := self.settings.get("DATABASE_URL"):
            with psycopg.connect(url, connect_timeout=10) as connection:
                return connection.execute(statement.encode()).fetchall()
        with closing(sqlite3.connect(f"file:{self.folder / 'taskdesk.sqlite3'}?mode=ro", uri=True, timeout=20)) as file:
            return file.execute(statement).fetchall()

    def analyze(self) -> None:
        """Let PostgreSQL look at its tables, as it does by itself within a minute; a measurement is over before."""
        if url := self.settings.get("DATABASE_URL"):
            with psycopg.connect(url, connect_timeout=10) as connection:
                connection.execute("analyze")

    def settled(self, look: Callable[[dict[str, int]], None] = lambda _: None) -> dict[str, int]:
        """Return the states when no task waits for a run or is in one; look sees them on the way."""
        deadline = time.monotonic() + CALM_SECONDS
        while True:
            states = self.states()
            look(states)
            if not states.get("submitted") and not states.get("working"):
                return states
            if time.monotonic() > deadline:
                raise BenchError(f"after {CALM_SECONDS:g} s there is still work: {states}\n{self.runner.tail()}")
            time.sleep(0.1)


@contextmanager
def deployed(shape: Shape, **settings: str) -> Iterator[Deployment]:
    """Give the shape, started; all of it is gone at the end, which an impatient second Ctrl-C does not cut short."""
    pins = pinning(shape, USABLE)
    with ExitStack() as stack:
        stack.callback(signal.pthread_sigmask, signal.SIG_UNBLOCK, ORDERS)
        try:
            stack.enter_context(on(pins.rest))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="taskdesk-bench-")))
            if shape.postgres:
                settings["DATABASE_URL"] = stack.enter_context(servers.postgres())
            if shape.worker:
                settings["REDIS_URL"] = settings["CELERY_BROKER_URL"] = stack.enter_context(servers.redis())
            deployment = Deployment(shape, pins, folder, settings)
            stack.callback(deployment.stop)
            deployment.start()
            yield deployment
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, ORDERS)
