"""`manage.py a2a principals`: the principals with their tenants, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_limit, read_name
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Principal


def _add_arguments(parser: ArgumentParser) -> None:
    listing = parser.add_subparsers(dest="verb", required=True).add_parser("list", help="list the newest principals")
    listing.add_argument("--tenant", type=read_name, help="only those of this tenant")
    listing.add_argument("--name", type=read_name, help="only those of this name")
    add_limit(listing)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = Principal.objects.select_related("tenant").order_by("-id")
    if options["tenant"]:
        rows = rows.filter(tenant__name=options["tenant"])
    if options["name"]:
        rows = rows.filter(name=options["name"])
    for row in printer.limit_rows(rows, options["limit"]):
        printer.print_line({"id": row.pk, "name": row.name, "tenant": row.tenant.name, "created_at": row.created_at})


PRINCIPALS = Noun(
    help="list principals, in whose names keys, accounts and clients call",
    add_arguments=_add_arguments,
    handle=_handle,
)
