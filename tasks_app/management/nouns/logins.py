"""`manage.py a2a logins`: wrong logins of operators, and the end of the wait that follows, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import by, takes_limit, takes_operator
from tasks_app.models import WrongLogins
from tasks_app.operators import logins

COLUMNS = (
    "kind",
    "value",
    "running",
    "total",
    "refused",
    "locked_until",
    "began_at",
    "last_at",
    "last_with",
    "right_at",
)


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    takes_limit(verbs.add_parser("list", help="users and addresses with wrong logins, newest first"))
    unlock = verbs.add_parser("unlock", help="let a user or an address try again at once")
    unlock.add_argument("value", help="as `logins list` shows it")
    takes_operator(unlock)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "list":
        for row in printer.newest(WrongLogins.objects.order_by("-last_at").values(*COLUMNS), options["limit"]):
            printer.line(row)
        return
    rows = logins.unlock(options["value"], by(options))
    if not rows:
        raise CommandError(f"There are no wrong logins of {options['value']!r}; see `manage.py a2a logins list`.")
    for row in rows:
        printer.line({"kind": row.kind, "value": row.value, "done": "unlock"})


LOGINS = Noun(
    help="wrong logins of operators: list them, and end the wait that follows",
    add_arguments=_add_arguments,
    handle=_handle,
)
