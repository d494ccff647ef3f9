"""`manage.py a2a usage`: the usage history of zones, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_limit, add_window, in_window, read_text
from tasks_app.management.nouns import Noun, Printer, owned_line
from tasks_app.models import Usage
from tasks_app.operators import columns


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--correlation", type=read_text, help="only the calls with this correlation id")
    parser.add_argument("--channel", type=read_text, help="only calls from this channel")
    add_window(parser)
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = in_window(Usage.objects.select_related("owner", "tenant").order_by("-pk"), "created_at", options)
    if options["correlation"] is not None:
        rows = rows.filter(correlation_id=options["correlation"])
    if options["channel"] is not None:
        rows = rows.filter(channel=options["channel"])
    for row in printer.limit_rows(rows, options["limit"]):
        printer.print_line(owned_line(row, columns.USAGE))


USAGE = Noun(
    help="list the calls of zones by correlation id, channel and date, newest first",
    add_arguments=_add_arguments,
    handle=_handle,
)
