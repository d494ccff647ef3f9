"""manage.py serve: the doors and the background work in one process."""

import fcntl
import logging
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.cards.addresses import LOOPBACK, listening
from tasks_app.database.rows import on_postgres
from tasks_app.management import development
from tasks_app.management.operator import DatabaseCommand
from tasks_app.process import services
from tasks_app.process.server import serve

log = logging.getLogger(__name__)


class Command(DatabaseCommand):
    requires_system_checks = "__all__"
    help = "Serves HTTP on HOST and PORT and runs agents, until SIGINT or SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_open_development()
        self.check(include_deployment_checks=True, tags=["start"], databases=["default"])
        if settings.DEVELOPMENT:
            development.end_former_key()
        lock = None if on_postgres() else lock_folder(settings.DATA_DIR)
        take_over_folder()
        if serve(lambda: log.info("serving at %s", listening())):
            if lock:
                lock.close()
            raise cannot_listen()


def cannot_listen() -> CommandError:
    """The end of a server that could not begin; what kept it from that has been logged."""
    return CommandError(
        f"Cannot listen at {listening()}; the line above says why. If the port is taken, set PORT to another one; if "
        "the address is not one of this machine's, set HOST."
    )


def refuse_open_development() -> None:
    """A development server has a made-up key and no TLS in front: it stays on this machine."""
    if settings.HOST in LOOPBACK:
        return
    if not settings.DEVELOPMENT and not settings.ALLOWED_HOSTS:
        raise CommandError(f"HOST={settings.HOST}: set ALLOWED_HOSTS to the names that this server is reached by.")
    if settings.DEVELOPMENT:
        raise CommandError(
            f"HOST={settings.HOST} would open a development server to the network. Set SECRET_KEY (a long random text) "
            "and ALLOWED_HOSTS (the names it is reached by) to serve others, or leave HOST at 127.0.0.1."
        )


def lock_folder(folder: Path) -> IO[str]:
    """The folder's lock, held while the file is open. Raises CommandError if another process holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"DATA_DIR: cannot keep a lock in {shown(folder)}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CommandError(
            f"Another server works with {shown(folder)} already. Stop it, or set DATA_DIR and PORT for a second one."
        ) from None
    return file


def take_over_folder() -> None:
    """On SQLite the lock says that there is no other process: what was interrupted goes on now."""
    if not on_postgres():
        services.take_over()


def shown(path: Path) -> str:
    """The path as a person standing in the project would write it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
