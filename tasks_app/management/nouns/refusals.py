"""`manage.py a2a refusals`: refused calls of strangers by minute and address, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.exchanges.refusals import OTHERS, UNKNOWN, address_of_search, is_address
from tasks_app.management.arguments import add_limit, add_window, check_window, read_text
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Refusals

COLUMNS = ("minute", "address", "unauthenticated", "limited", "invalid", "recorded")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--address", type=read_text, help="only calls from this IP address; one of IPv6 stands for its /64 network"
    )
    add_window(parser)
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    check_window(options)
    rows = Refusals.objects.order_by("-minute", "address")
    address = options["address"]
    if address is not None:
        if not is_address(address):
            raise CommandError(f"{address!r} is no IP address; {OTHERS} and {UNKNOWN} have rows, too.")
        rows = rows.filter(address=address_of_search(address))
    if since := options["since"]:
        rows = rows.filter(minute__gte=since.replace(second=0, microsecond=0))
    if until := options["until"]:
        rows = rows.filter(minute__lt=until)
    for row in printer.limit_rows(rows.values(*COLUMNS), options["limit"]):
        printer.print_line(row)


REFUSALS = Noun(
    help="list refused calls whose callers are not known, by minute and address, newest first",
    add_arguments=_add_arguments,
    handle=_handle,
)
