"""`manage.py a2a usage`: the usage history of zones, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_limit, add_since
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Usage

COLUMNS = ("created_at", "correlation_id", "channel", "owner__name", "task_id", "outcome", "skipped")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--correlation", help="only the calls with this correlation id")
    parser.add_argument("--channel", help="only calls from this channel")
    add_since(parser)
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = Usage.objects.order_by("-created_at")
    if options["correlation"]:
        rows = rows.filter(correlation_id=options["correlation"])
    if options["channel"]:
        rows = rows.filter(channel=options["channel"])
    if since := options["since"]:
        rows = rows.filter(created_at__gte=since)
    for row in printer.limit_rows(rows.values(*COLUMNS), options["limit"]):
        printer.print_line(row)


USAGE = Noun(
    help="list the calls of zones by correlation id, channel and date, newest first",
    add_arguments=_add_arguments,
    handle=_handle,
)
