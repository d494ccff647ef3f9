"""manage.py runserver and `make dev`: a development server on daphne that runs agents and reloads edited code."""

import sys
import warnings
from typing import Any

# Django's reloader lists the loaded modules while the server's thread imports others. Celery loads dateutil, which
# tries a module of Windows that is gone a moment later; the reloader would end with a KeyError if it met that one.
import celery.app.base  # noqa: F401
from daphne.management.commands.runserver import Command as DaphneCommand
from django.conf import settings
from django.core.management import CommandError
from twisted.logger import globalLogBeginner

from tasks_app.cards.addresses import LOOPBACK
from tasks_app.database.sql import on_postgres
from tasks_app.management import development
from tasks_app.management.commands.run import prepare, print_now
from tasks_app.management.commands.serve import check_port, lock_folder, take_over_tasks
from tasks_app.management.reloading import ReloadingServer, is_server, supervise
from tasks_app.process import services
from tasks_app.runner.fork_server import finish


class Command(DaphneCommand):  # type: ignore[misc]  # daphne has no types
    help = "Serve this machine and run agents, in one process that reloads edited code."

    def handle(self, *args: Any, **options: Any) -> None:
        development.refuse_production("runserver")
        options["addrport"] = options["addrport"] or f"{_add_brackets(settings.HOST)}:{settings.PORT}"
        super().handle(*args, **options)

    def run(self, **options: Any) -> None:
        """Serve until Ctrl-C, or until the reloader wants a new process. Running agents then get their grace."""
        if self.addr not in LOOPBACK:
            raise CommandError(
                f"{self.addr}: `runserver` is for this machine only, because it prints a login. Use 127.0.0.1."
            )
        if not options["use_reloader"]:
            code = 0
            self.inner_run(**options)
        elif is_server():
            code = ReloadingServer().run(self.inner_run, **options)
        else:
            sys.exit(supervise())
        services.stop()
        finish(code)

    def inner_run(self, *args: Any, **options: Any) -> None:
        """Prepare the data folder as `run` does, start the background work, and serve."""
        settings.HOST, settings.PORT, settings.HAS_SOCKETS = self.addr, int(self.port), False
        check_port()  # daphne would only log that it cannot listen, below the address that is printed here.
        lock = None if on_postgres() else lock_folder(settings.DATA_DIR)
        text = prepare()
        take_over_tasks()
        services.start()
        print_now(self.stdout, text)
        _keep_warnings()
        super().inner_run(*args, **options)
        if lock:
            lock.close()

    def log_action(self, protocol: str, action: str, details: dict[str, Any]) -> None:
        """Log nothing: the application itself logs each call, in the same format under every server."""


def _keep_warnings() -> None:
    """Keep the warnings of Python on standard error, where the author of an agent looks for them.

    The first call of `beginLoggingTo` in a process sends them to Twisted's log. That of daphne would be the first one,
    and daphne drops this log.
    """
    show = warnings.showwarning
    globalLogBeginner.beginLoggingTo([], discardBuffer=True, redirectStandardIO=False)
    warnings.showwarning = show


def _add_brackets(host: str) -> str:
    """Return an IPv6 address in brackets, as a URL needs it, and any other host unchanged."""
    return f"[{host}]" if ":" in host else host
