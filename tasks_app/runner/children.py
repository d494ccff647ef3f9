"""The entry of child processes that run one agent each. Importing this module loads Django and all agents. The server
that forks the children imports it before the first of them, so that a child starts in milliseconds."""

from multiprocessing.connection import Connection
from socket import socket

import django
from django.apps import apps

from tasks_app.agent_files import folder

if not apps.ready:
    folder.is_tolerant = True  # A file may be broken by now. Each child then imports the module of its own agent.
    django.setup()


def main(connection: socket, errors: Connection, order: bytes) -> None:
    """Run one agent, and end the process."""
    from tasks_app.runner.child import run_alone  # needs the apps

    run_alone(connection, errors, order)
