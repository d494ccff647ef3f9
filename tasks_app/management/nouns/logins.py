"""`manage.py a2a logins`: wrong logins of operators, and the end of a wait, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.arguments import add_limit, add_operator, read_operator, read_text
from tasks_app.management.nouns import Noun, Printer, report_unchanged
from tasks_app.models import WrongLogins
from tasks_app.operators import columns, logins


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    add_limit(verbs.add_parser("list", help="list users and addresses with wrong logins, newest first"))
    unlock = verbs.add_parser("unlock", help="let a user or an address log in again without a wait")
    unlock.add_argument("value", type=read_text, help="the user name or the address, as printed by `logins list`")
    add_operator(unlock)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "list":
        for row in printer.limit_rows(
            WrongLogins.objects.order_by("-last_at").values(*columns.WRONG_LOGINS), options["limit"]
        ):
            printer.print_line(row)
        return
    rows = logins.unlock(options["value"], read_operator(options))
    if not rows:
        raise CommandError(
            f"There are no wrong logins of {options['value']!r}; `manage.py a2a logins list` prints all."
        )
    for row, is_changed in rows.items():
        if not is_changed:
            report_unchanged(printer, str(row), "unlocked already")
        printer.print_line({"kind": row.kind, "value": row.value} | ({"done": "unlock"} if is_changed else {}))


LOGINS = Noun(
    help="list wrong logins of operators, or end the wait that follows them",
    add_arguments=_add_arguments,
    handle=_handle,
)
