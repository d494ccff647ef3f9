"""`manage.py a2a tenants`: the tenants, as JSON lines. Each is made with its first principal."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_limit
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Tenant


def _add_arguments(parser: ArgumentParser) -> None:
    add_limit(parser.add_subparsers(dest="verb", required=True).add_parser("list", help="list the newest tenants"))


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    for row in printer.limit_rows(Tenant.objects.order_by("-id").values("id", "name", "created_at"), options["limit"]):
        printer.print_line(row)


TENANTS = Noun(help="list the tenants", add_arguments=_add_arguments, handle=_handle)
