"""manage.py serve: the HTTP doors and the background work in one process."""

import contextlib
import fcntl
import logging
import os
import socket
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.cards.addresses import LOOPBACK, listening
from tasks_app.database.sql import on_postgres
from tasks_app.management import development
from tasks_app.management.database_command import DatabaseCommand
from tasks_app.process import services
from tasks_app.process.server import serve

log = logging.getLogger(__name__)
MOST_DIGITS = 20
"""Digits of the number of a process. A file with more was written by something else."""
_locks: list[IO[str]] = []
"""The locks of the database that this process has until it ends."""


class Command(DatabaseCommand):
    requires_system_checks = "__all__"
    help = "Serve HTTP on HOST and PORT and run agents, until SIGINT or SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_open_development()
        self.check(include_deployment_checks=True, tags=["start"], databases=["default"])
        if settings.DEVELOPMENT:
            development.end_former_key()
        lock = None if on_postgres() else lock_folder(settings.DATA_DIR)
        take_over_tasks()
        if serve(lambda: log.info("serving at %s", listening())):
            if lock:
                lock.close()
            raise build_listen_error()


def build_listen_error(reason: str = "the line above has the reason") -> CommandError:
    """Return the error for a server that could not listen. Without a reason it is in the log line before."""
    return CommandError(
        f"Cannot listen at {listening()}; {reason}. If the port is in use, set PORT to another one. If the address "
        "does not belong to this machine, set HOST."
    )


def check_port() -> None:
    """Check that a server can listen on HOST and PORT. Raises CommandError."""
    family = socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET
    try:
        socket.create_server((settings.HOST, settings.PORT), family=family).close()
    except OSError as error:
        raise build_listen_error(os.strerror(error.errno) if error.errno else str(error)) from None


def refuse_open_development() -> None:
    """Raise CommandError for a server that is open to the network without the settings of a production.

    A development server has a generated secret and no TLS in front, so it must stay on this machine.
    """
    if settings.HOST in LOOPBACK:
        return
    if not settings.DEVELOPMENT and not settings.ALLOWED_HOSTS:
        raise CommandError(f"HOST={settings.HOST}: set ALLOWED_HOSTS to the host names under which clients reach it.")
    if settings.DEVELOPMENT:
        raise CommandError(
            f"HOST={settings.HOST} would open a development server to the network. To serve others, set SECRET_KEY (a "
            "long random text) and ALLOWED_HOSTS (the host names under which clients reach it); or leave HOST at "
            "127.0.0.1."
        )


def lock_folder(folder: Path) -> IO[str]:
    """Lock the data folder for as long as the returned file is open. Raise CommandError if another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"DATA_DIR: cannot create a lock file in {shorten_path(folder)}: {error.strerror}. "
            "Make the folder writable, or set DATA_DIR to another one."
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CommandError(
            f"Another server{_name_process(file)} already uses {shorten_path(folder)}. Stop it, or set DATA_DIR and "
            "PORT for a second one."
        ) from None
    with contextlib.suppress(OSError):  # The disk may be full. The lock counts, and not what the file says.
        file.truncate(0)
        file.write(f"{os.getpid()} {socket.gethostname()}")
        file.flush()
    return file


def _name_process(file: IO[str]) -> str:
    """Return the process that has the lock, in brackets; empty if the file names none that exists on this machine."""
    file.seek(0)
    number, _, host = file.read(300).partition(" ")
    try:
        if host != socket.gethostname() or not (number.isascii() and number.isdecimal() and len(number) < MOST_DIGITS):
            return ""
        os.kill(int(number), 0)
    except PermissionError:
        pass  # It exists, and belongs to another user.
    except (OSError, OverflowError):
        return ""
    return f" (process {number})"


def take_over_tasks() -> None:
    """Take over interrupted tasks at once on SQLite, where a lock proves that no other process runs them.

    The lock of the data folder does not prove that: DATABASE_URL may give two folders one file. While another process
    has the file, the leases of processes that have ended run out.
    """
    if on_postgres():
        return
    path = Path(settings.DATABASES["default"]["NAME"]).resolve()
    try:
        file = path.with_name(f"{path.name}.lock").open("a", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"Cannot create a lock file beside {shorten_path(path)}: {error.strerror}.") from None
    _locks.append(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        log.warning("another process uses %s: only tasks whose leases end are taken over", shorten_path(path))
    else:
        services.take_over()
    with contextlib.suppress(OSError):  # Some file systems have no locks.
        fcntl.flock(file, fcntl.LOCK_SH)


def shorten_path(path: Path) -> str:
    """Return the path relative to the working directory, if it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
