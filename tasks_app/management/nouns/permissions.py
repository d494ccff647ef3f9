"""`manage.py a2a permissions`: allow and deny agents, skills, phases and operations, with JSON lines as output."""

from argparse import ArgumentParser
from typing import Any, cast

from django.core.management.base import CommandError

from tasks_app.callers.principals import EVERYONE
from tasks_app.callers.rules import KINDS, Kind
from tasks_app.management.arguments import (
    add_holder,
    add_limit,
    add_operator,
    read_name,
    read_operator,
    read_row_id,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, find_row, held_by, missing_row
from tasks_app.models import Permission
from tasks_app.operators import permissions
from tasks_app.operators.holders import find_holder
from tasks_app.operators.refusals import sentence_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("allow", "deny"):
        change = verbs.add_parser(verb, help=f"{verb} names of a kind; other names of the kind need a permission then")
        change.add_argument("principal", type=read_name, help="the principal; * for all principals of the tenant")
        change.add_argument("kind", choices=KINDS)
        change.add_argument(
            "pattern", type=read_text, help="a name, or the beginning of names and an asterisk, such as report-*"
        )
        change.add_argument(
            "--tenant", type=read_name, default="default", help='the tenant of the principal; "default" by default'
        )
        add_operator(change)
    listing = verbs.add_parser("list", help="list the newest permissions")
    add_holder(listing)
    add_limit(listing)
    remove = verbs.add_parser("remove", help="remove a permission")
    remove.add_argument("id", type=read_row_id, help="the id of the permission, as printed by `permissions list`")
    add_operator(remove)


def _set(printer: Printer, options: dict[str, Any]) -> None:
    kind, allows = cast("Kind", options["kind"]), options["verb"] == "allow"
    name = None if options["principal"] == EVERYONE else options["principal"]
    try:
        to = find_holder(options["tenant"], name)
        row = permissions.set_permission(to, kind, options["pattern"], allows=allows, by=read_operator(options))
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(_describe(row))


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = Permission.objects.select_related("principal", "tenant").order_by("-id")
    if options["principal"] == EVERYONE:
        rows, options = rows.filter(principal=None), options | {"principal": None}
    for row in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(_describe(row))


def _remove(printer: Printer, options: dict[str, Any]) -> None:
    names = ("permission", "permissions")
    row = find_row(Permission.objects.select_related("principal", "tenant"), options["id"], *names)
    if not permissions.remove_permission(row, read_operator(options)):
        raise missing_row(options["id"], *names)
    printer.print_line(_describe(row))


def _describe(row: Permission) -> dict[str, Any]:
    """Return the columns of a permission."""
    return {
        "id": row.pk,
        "tenant": row.tenant.name,
        "principal": row.principal.name if row.principal else EVERYONE,
        "effect": row.effect,
        "kind": row.kind,
        "pattern": row.pattern,
        "created_at": row.created_at,
    }


_VERBS = {"allow": _set, "deny": _set, "list": _list, "remove": _remove}

PERMISSIONS = Noun(
    help="allow and deny agents, skills, phases of workflows and batch operations",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
