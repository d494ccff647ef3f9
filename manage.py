#!/usr/bin/env python
"""Django's commands, and ours: run, serve, worker, tasks, exchanges, deliveries, a2a. What ends one is a sentence."""

import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import InterfaceError, OperationalError

from a2a.agents import AgentDefinitionError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
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
