"""manage.py run: the whole platform in one process on this machine."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.db import connections

from tasks_app.cards.addresses import listening
from tasks_app.database.schema import lacking
from tasks_app.database.sql import on_postgres
from tasks_app.management import development
from tasks_app.management.commands.serve import build_listen_error, lock_folder, shorten_path, take_over_tasks
from tasks_app.management.database_command import DatabaseCommand, describe_database
from tasks_app.process.server import serve

READY = """\
Taskdesk is ready

  base   {base}/   the address for clients
  try    {base}/#key={key}   in a browser
  card   {base}/.well-known/agent-card.json
  admin  {base}/admin/   {login}

Stream a story:

  curl -N {base}/agents/story/jsonrpc -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{{"messageId":"'$(date +%s%N)'",\
"role":"ROLE_USER","parts":[{{"text":"Tell me a story"}}]}}}}}}'

Data is stored in {data}. Ctrl-C stops the server.
"""


class Command(DatabaseCommand):
    help = "Migrate, create an operator and an API key, and serve on HOST and PORT: one process, no other services."
    requires_migrations_checks = False  # it migrates itself, once it has locked the data folder

    def handle(self, *args: Any, **options: Any) -> None:
        development.refuse_production("run")
        lock = lock_folder(settings.DATA_DIR)
        self.check(fail_level=40)
        text = prepare()
        take_over_tasks()
        code = serve(lambda: print_now(self.stdout, text))
        lock.close()
        if code:
            raise build_listen_error()


def print_now(output: OutputWrapper, text: str) -> None:
    """Print a text at once. Python fills a buffer for a file or a pipe, which would get it when the server ends."""
    output.write(text)
    output.flush()


def prepare() -> str:
    """Migrate, create an operator and a key if there are none, and return the text that explains how to begin."""
    if lacking():
        call_command("migrate", verbosity=0, interactive=False)
    data = f"the database {describe_database()}" if on_postgres() else shorten_path(settings.DATA_DIR)
    text = READY.format(base=listening(), login=development.prepare_login(), key=development.prepare_key(), data=data)
    connections.close_all()
    return text
