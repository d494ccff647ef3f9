"""`manage.py a2a audit`: the export of who did what, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.audit.export import Window, export, has_caller
from tasks_app.management.arguments import add_since, check_window, read_text, read_time
from tasks_app.management.nouns import Noun, Printer


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    command = verbs.add_parser(
        "export", help="print entries, counts of refused calls and acts of operators, oldest first, without a limit"
    )
    add_since(command)
    command.add_argument(
        "--until", type=read_time, metavar="TIME", help="list only what is older than a time or an age"
    )
    command.add_argument(
        "--caller", type=read_text, metavar="NAME", help="only calls of this principal: its name, or TENANT/NAME"
    )


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    check_window(options)
    window = Window(since=options["since"], until=options["until"], caller=options["caller"])
    count = 0
    for row in export(window):
        printer.print_line(row)
        count += 1
    if count == 0 and not has_caller(window):
        raise CommandError(f"There is no principal {window.caller!r}, and no record of one in this window.")


AUDIT = Noun(help="export who did what", add_arguments=_add_arguments, handle=_handle)
