"""manage.py serve: the doors and the background work in one process."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tasks_app.server import serve


class Command(BaseCommand):
    help = "Serves HTTP on HOST and PORT and runs agents, until SIGINT or SIGTERM."
    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_open_development()
        if serve():
            raise CommandError(f"Port {settings.PORT} is taken or not allowed; set PORT to another one.")


def refuse_open_development() -> None:
    """A development server has a made-up key and no TLS in front: it stays on this machine."""
    if settings.DEVELOPMENT and settings.HOST not in {"127.0.0.1", "localhost", "::1"}:
        raise CommandError(
            f"HOST={settings.HOST} would open a development server to the network. Set SECRET_KEY (a long random text) "
            "and ALLOWED_HOSTS (the names it is reached by) to serve others, or leave HOST at 127.0.0.1."
        )
