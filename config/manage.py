"""The entry of every command, for `manage.py` and an installed `taskdesk`. An expected failure prints a sentence."""

import errno
import os
import signal
import sys
import threading
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, execute_from_command_line
from django.db import InterfaceError, OperationalError

from a2a.definitions import AgentDefinitionError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk that has no room, or of a file that may not grow."""
RELOADED = "django-main-thread"
"""The thread in which Django's reloader runs a server."""


def main() -> None:
    """Run the command that the arguments name, and end with its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # An installed command also finds agents' modules in the current folder, as manage.py finds those in its own.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    threading.excepthook = _report_thread
    try:
        try:
            # The parent of a development server blocks them until here: Python's own start would print a traceback.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        if "--traceback" in sys.argv or (ending := _ending_of(error)) is None:
            raise
        # Python flushes the rest of the output at exit, which would fail again with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ending)
    except (AgentDefinitionError, ImproperlyConfigured) as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(str(error))
    except (OperationalError, InterfaceError) as error:
        if "--traceback" in sys.argv:
            raise
        from tasks_app.management.database_command import describe_failure  # needs Django set up

        sys.exit(describe_failure(error))


def _ending_of(error: OSError) -> int | str | None:
    """Return what to exit with after an error of the output; None for an error of something else."""
    if isinstance(error, BrokenPipeError):  # The reader closed the pipe, as `head` does.
        return 128 + signal.SIGPIPE
    if error.errno in FULL and error.filename is None:
        return f"The output is not complete: it cannot be written ({error.strerror})."
    return None


def _report_thread(raised: threading.ExceptHookArgs) -> None:
    """Print the error that ended a thread.

    For a mistake in code or settings, under the reloader, that is a sentence: the reloader waits for the mended file.
    All else has a traceback, as usual.
    """
    error = raised.exc_value
    is_reloaded = raised.thread is not None and raised.thread.name == RELOADED
    if not is_reloaded or not isinstance(error, AgentDefinitionError | ImproperlyConfigured | CommandError):
        threading.__excepthook__(raised)
        return
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    if isinstance(error, CommandError):
        os._exit(1)  # no edit of a file would help, so the reloader need not wait for one
