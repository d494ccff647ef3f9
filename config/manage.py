"""The entry of every command, of `manage.py` and of an installed `taskdesk`. What ends one is a sentence."""

import os
import signal
import sys
import threading
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, execute_from_command_line
from django.db import InterfaceError, OperationalError

from a2a.agents import AgentDefinitionError

RELOADED = "django-main-thread"
"""The thread in which Django's reloader runs a server."""


def main() -> None:
    """Run the command that the arguments name, and end with its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # An installed command finds modules of agents in the folder where it is called, as manage.py does beside it.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    threading.excepthook = _say
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        if "--traceback" in sys.argv:
            raise
        # Whoever reads what is printed has seen enough. What is left of it would be complained of at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (AgentDefinitionError, ImproperlyConfigured) as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(str(error))
    except (OperationalError, InterfaceError) as error:
        if "--traceback" in sys.argv:
            raise
        from tasks_app.management.operator import unusable  # needs Django set up

        sys.exit(unusable(error))


def _say(raised: threading.ExceptHookArgs) -> None:
    """Print what ended a thread: a sentence where the reloader waits for a mistake to be mended, else as ever."""
    error = raised.exc_value
    is_reloaded = raised.thread is not None and raised.thread.name == RELOADED
    if not is_reloaded or not isinstance(error, AgentDefinitionError | ImproperlyConfigured | CommandError):
        threading.__excepthook__(raised)
        return
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    if isinstance(error, CommandError):
        os._exit(1)  # nothing in a file would mend it
