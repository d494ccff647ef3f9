"""manage.py run: everything in one process on this machine, ready to talk to."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from tasks_app.cards.addresses import listening
from tasks_app.database.rows import on_postgres
from tasks_app.database.schema import lacking
from tasks_app.management import development
from tasks_app.management.commands.serve import cannot_listen, lock_folder, shown, take_over_folder
from tasks_app.management.operator import DatabaseCommand, place
from tasks_app.process.server import serve

READY = """\
Taskdesk is ready

  base   {base}/   the address that clients take
  try    {base}/#key={key}   in a browser
  card   {base}/.well-known/agent-card.json
  admin  {base}/admin/   {login}

Hear a story, live:

  curl -N {base}/agents/story/jsonrpc -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{{"messageId":"'$(date +%s%N)'",\
"role":"ROLE_USER","parts":[{{"text":"Tell me a story"}}]}}}}}}'

Data is kept in {data}. Ctrl-C ends the server.
"""


class Command(DatabaseCommand):
    help = "Migrates, makes an operator and an API key, then serves on HOST and PORT: one process, no services."
    requires_migrations_checks = False  # it migrates, and checks once the data folder is known to be ours

    def handle(self, *args: Any, **options: Any) -> None:
        development.refuse_production("run")
        lock = lock_folder(settings.DATA_DIR)
        self.check(fail_level=40)
        text = prepared()
        take_over_folder()
        code = serve(lambda: self.stdout.write(text))
        lock.close()
        if code:
            raise cannot_listen()


def prepared() -> str:
    """Migrate, make what a newcomer needs, and return how to begin."""
    if lacking():
        call_command("migrate", verbosity=0, interactive=False)
    data = f"the database {place()}" if on_postgres() else shown(settings.DATA_DIR)
    text = READY.format(base=listening(), login=development.login(), key=development.key(), data=data)
    connections.close_all()
    return text
