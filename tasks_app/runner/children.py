"""The entry of child processes that run one agent each. Whoever imports it first loads Django and every agent: the
server that forks the children does so before the first of them, so that a child starts in milliseconds."""

from multiprocessing.connection import Connection

import django
from django.apps import apps

if not apps.ready:
    django.setup()


def main(connection: Connection, errors: Connection, order: bytes) -> None:
    """Run one agent, and end the process."""
    from tasks_app.runner.child import run_alone  # needs the apps

    run_alone(connection, errors, order)
