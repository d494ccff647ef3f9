"""manage.py run: everything in one process on this machine, ready to talk to."""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from tasks_app import access
from tasks_app.addresses import listening
from tasks_app.management.commands.serve import LOOPBACK, cannot_listen, lock_folder, shown, take_over_folder
from tasks_app.management.operator import DatabaseCommand
from tasks_app.server import serve

READY = """\
Taskdesk is ready

  card   {base}/.well-known/agent-card.json
  admin  {base}/admin/   login {operator}   password {password}

Hear a story, live:

  curl -N {base}/agents/story/jsonrpc -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{{"messageId":"'$(date +%s%N)'",\
"role":"ROLE_USER","parts":[{{"text":"Tell me a story"}}]}}}}}}'

Data is kept in {data}. Ctrl-C ends the server.
"""
OPERATOR = "admin"


class Command(DatabaseCommand):
    help = "Migrates, makes an operator and an API key, then serves on HOST and PORT: one process, no services."
    requires_system_checks = []  # noqa: RUF012  # Django reads it so
    """Checked after the data folder is known to be ours."""
    requires_migrations_checks = False  # it migrates

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.HOST not in LOOPBACK:
            raise CommandError(
                f"HOST={settings.HOST}: `run` is for this machine only, with a login that it prints. To serve others, "
                "set SECRET_KEY (a long random text) and ALLOWED_HOSTS, and use `manage.py serve`; see the README."
            )
        lock = lock_folder(settings.DATA_DIR)
        self.check(fail_level=40)
        call_command("migrate", verbosity=0, interactive=False)
        password = kept(settings.DATA_DIR / "admin.password", lambda: secrets.token_urlsafe(12))
        make_operator(password)
        key = kept(settings.DATA_DIR / "api.key", lambda: access.PREFIX + secrets.token_urlsafe(32))
        for accepted in filter(None, (key, settings.DEV_KEY)):
            access.new_key("developer", name="development", key=accepted)
        connections.close_all()
        take_over_folder()
        text = READY.format(
            base=listening(),
            operator=OPERATOR,
            password=password,
            key=settings.DEV_KEY or key,
            data=shown(settings.DATA_DIR),
        )
        code = serve(lambda: self.stdout.write(text))
        lock.close()
        if code:
            raise cannot_listen()


def kept(path: Path, make: Any) -> str:
    """The secret in the file, made at first use, readable by this user alone."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make())
    return path.read_text(encoding="utf-8").strip()


def make_operator(password: str) -> None:
    """The operator of the development server, with the password that is printed."""
    users = get_user_model().objects
    user, _ = users.get_or_create(username=OPERATOR, defaults={"is_staff": True, "is_superuser": True})
    if not user.check_password(password):
        user.set_password(password)
        user.save()
