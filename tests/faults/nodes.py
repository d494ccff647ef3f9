"""Processes to be hurt: a server of ours, its signals, its log, and the commands of its folder."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import httpx
import orjson
import psycopg
import redis

from tests.faults import forks
from tests.faults.forks import ROOT
from tests.support import servers

KEY = "tdk_for-the-fault-tests"
START_SECONDS = 120.0
AGENTS = {"A2A_AGENT_MODULES": "tests.faults.agents"}
HOSTILE = {"A2A_AGENT_MODULES": "tests.faults.agents,tests.faults.hostile_agents"}
ISOLATED = {"A2A_AGENT_MODULES": "tests.faults.agents,tests.faults.isolated_agents"}
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes a program that heeds Ctrl-C. A suite in the background ignores it, and so would all that it starts."""


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return an environment without our settings: DATABASE_URL and the like belong to the tests around this one."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"PYTHONUNBUFFERED": "1", "A2A_ENV_FILE": "", "DATA_DIR": str(folder), "DEV_KEY": KEY} | settings


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def manage(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Return a command of manage.py that ends by itself."""
    return forks.run(command(*arguments), environment(folder, **settings), 120)


class Launched:
    """A process of a test's own."""

    process: "subprocess.Popen[bytes] | None" = None

    def tell(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, as the kernel does when memory is short. Does nothing to one that has ended."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)


class Node(Launched):
    """One server process."""

    def __init__(self, folder: Path, verb: str = "run", *arguments: str, **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.verb = verb
        self.command = command(verb, *arguments)
        self.port = servers.free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.settings = {"PORT": str(self.port)} | settings
        self.file = folder.parent / f"{verb}-{self.port}.log"

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def log(self) -> str:
        return self.file.read_text(encoding="utf-8")

    async def start(self) -> "Node":
        """Start it, again if need be, and return when it answers."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        async with httpx.AsyncClient(verify=servers.NO_TLS) as client:
            while time.monotonic() < deadline:
                assert self.process
                assert self.process.poll() is None, f"it ended at once:\n{self.log}"
                try:
                    if (await client.get(f"{self.base}/healthz")).status_code == 200:
                        return self
                except httpx.TransportError:
                    await asyncio.sleep(0.03)
        raise AssertionError(f"it did not answer within {START_SECONDS:g} s:\n{self.log}")

    def launch(self) -> None:
        with self.file.open("ab") as output:
            self.process = forks.launch(self.command, environment(self.folder, **self.settings), output, output)

    async def ended(self, seconds: float = 30.0) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process
        return await asyncio.to_thread(self.process.wait, seconds)

    async def stop(self, number: signal.Signals = signal.SIGINT, seconds: float = 30.0) -> int:
        """Tell it to go; return its exit code."""
        self.tell(number)
        return await self.ended(seconds)

    def rss(self) -> int:
        """Return bytes in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    async def logs(self, words: str) -> None:
        """Wait until it has logged them."""
        deadline = time.monotonic() + START_SECONDS
        while words not in self.log:
            assert time.monotonic() < deadline, self.log
            await asyncio.sleep(0.02)

    async def lines(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command of manage.py on this node's data; return the lines it prints."""
        done = await asyncio.to_thread(manage, self.folder, *arguments, **self.settings)
        assert done.returncode == 0, done.stderr
        return [orjson.loads(line) for line in done.stdout.splitlines()]

    async def shown(self, task_id: str) -> dict[str, Any]:
        """Return everything about a task, as an operator sees it."""
        (task,) = await self.lines("tasks", "show", task_id)
        return task


class Worker(Node):
    """A Celery worker."""

    COMMAND, READY = "worker", "worker is ready"
    """The command that starts it, and what its log says when it takes messages."""

    def __init__(self, folder: Path, *arguments: str, **settings: str) -> None:
        super().__init__(folder, self.COMMAND, *arguments, **settings)

    async def start(self) -> Self:
        """Start it, again if need be, and return when it takes messages."""
        before = self.log.count(self.READY) if self.file.exists() else 0
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while self.log.count(self.READY) == before:
            assert self.process
            assert self.process.poll() is None, f"it ended at once:\n{self.log}"
            assert time.monotonic() < deadline, f"it was not ready within {START_SECONDS:g} s:\n{self.log}"
            await asyncio.sleep(0.03)
        return self


class Execution(Worker):
    """An execution zone behind a broker, without HTTP."""

    COMMAND, READY = "execution", "The execution zone is ready."


class Redis(Launched):
    """A Redis-protocol server of our own, to be frozen, flushed and killed. It has no persistence, so a kill takes all
    its data."""

    def __init__(self) -> None:
        self.port = servers.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = servers.launch_redis(self.port)
        servers.wait_for_redis(self.process, self.url)

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def demote(self) -> None:
        """Make it a replica, which refuses writes, as a failover does to the former primary."""
        with redis.Redis.from_url(self.url) as client:
            client.replicaof("127.0.0.1", "9")

    def promote(self) -> None:
        """Make it a primary again."""
        with redis.Redis.from_url(self.url) as client:
            client.replicaof("NO", "ONE")


LEASE_SECONDS = 8
"""A lease that outlives a pause of its process by three seconds when a beat was due, as a busy machine makes them."""
TAKE_OVER_SECONDS = (LEASE_SECONDS + 0.5) * 3
"""Lease and sweep of the pair, with slack."""


def assert_says_why(task: dict[str, dict[str, dict[str, list[dict[str, str]]]]]) -> None:
    (part,) = task["status"]["message"]["parts"]
    assert part["text"].startswith("The worker was lost while the agent was at work, and it is tried once only.")


def holder(database: str, task_id: str, pair: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the node that runs the task, and the other one."""
    with psycopg.connect(database) as connection:
        row = connection.execute("select lease_owner from tasks_app_task where id = %s", (task_id,)).fetchone()
    assert row
    _, pid, _ = row[0].rsplit(":", 2)
    return pair if int(pid) == pair[0].pid else (pair[1], pair[0])
