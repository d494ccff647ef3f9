"""`manage.py a2a tenants`: the tenants, as JSON lines. Each is made with its first principal."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_limit, read_name
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Tenant


def _add_arguments(parser: ArgumentParser) -> None:
    listing = parser.add_subparsers(dest="verb", required=True).add_parser("list", help="list the newest tenants")
    listing.add_argument("--name", type=read_name, help="only the tenant of this name")
    add_limit(listing)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = Tenant.objects.order_by("-id").values("id", "name", "created_at")
    if options["name"]:
        rows = rows.filter(name=options["name"])
    for row in printer.limit_rows(rows, options["limit"]):
        printer.print_line(row)


TENANTS = Noun(help="list the tenants", add_arguments=_add_arguments, handle=_handle)
