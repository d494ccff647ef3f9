"""`manage.py a2a limits`: rate limits of callers and tenants, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.arguments import (
    add_holder,
    add_limit,
    add_operator,
    make_number_reader,
    read_name,
    read_operator,
    read_row_id,
)
from tasks_app.management.nouns import Noun, Printer, find_row, held_by
from tasks_app.models import RateLimit
from tasks_app.operators import rate_limits
from tasks_app.operators.refusals import sentence_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    change = verbs.add_parser("set", help="set the limit of a principal, or of a tenant as a whole")
    change.add_argument(
        "per_minute",
        metavar="units",
        type=make_number_reader(0, rate_limits.MOST),
        help="units of cost in a minute; 0: no limit",
    )
    change.add_argument("--tenant", type=read_name, default="default", help='the tenant; "default" by default')
    change.add_argument("--principal", type=read_name, help="a principal of the tenant; without it, the whole tenant")
    change.add_argument(
        "--burst", type=make_number_reader(1, rate_limits.MOST), help="units at once; those of a minute by default"
    )
    add_operator(change)
    listing = verbs.add_parser("list", help="list the newest limits")
    add_holder(listing)
    add_limit(listing)
    remove = verbs.add_parser("remove", help="remove a limit, so that the settings apply again")
    remove.add_argument("id", type=read_row_id, help="the id of the limit, as printed by `limits list`")
    add_operator(remove)


def _set(printer: Printer, options: dict[str, Any]) -> None:
    values = {name: options[name] for name in ("tenant", "principal", "per_minute", "burst")}
    try:
        row = rate_limits.set_limit(read_operator(options), **values)
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(_describe(row))


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = RateLimit.objects.select_related("tenant", "principal").order_by("-id")
    for row in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(_describe(row))


def _remove(printer: Printer, options: dict[str, Any]) -> None:
    row = find_row(RateLimit.objects.select_related("tenant", "principal"), options["id"], "limit", "limits")
    if not rate_limits.remove_limit(row, read_operator(options)):
        raise CommandError(f"The limit {row.pk} was removed meanwhile.")
    printer.print_line(_describe(row) | {"done": "remove"})


def _describe(row: RateLimit) -> dict[str, Any]:
    return {
        "id": row.pk,
        "tenant": row.tenant.name,
        "principal": row.principal.name if row.principal else None,
        "per_minute": row.per_minute,
        "burst": row.burst,
        "changed_at": row.changed_at,
    }


_VERBS = {"set": _set, "list": _list, "remove": _remove}

LIMITS = Noun(
    help="set, list and remove rate limits of callers and tenants",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
