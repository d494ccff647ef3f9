#!/usr/bin/env python
"""Django's commands, and ours: run, serve."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import InterfaceError, OperationalError

from a2a.agents import AgentDefinitionError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except (AgentDefinitionError, ImproperlyConfigured) as error:
        sys.exit(str(error))
    except (OperationalError, InterfaceError) as error:
        if "--traceback" in sys.argv:
            raise
        from tasks_app.management.operator import unusable  # needs Django set up

        sys.exit(unusable(error))
