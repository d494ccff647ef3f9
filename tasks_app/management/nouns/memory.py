"""`manage.py a2a memory`: entries of the memory as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.arguments import add_limit, add_operator, make_number_reader, read_operator, read_text
from tasks_app.management.nouns import Noun, Printer, find_row, owned_line
from tasks_app.models import MemoryEntry
from tasks_app.operators import columns, lookup

read_id = make_number_reader(1, 999_999_999)


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the entries without their values, newest first")
    listing.add_argument("--owner", type=read_text, help="only those of a principal, such as olga or acme/olga")
    listing.add_argument("--namespace", type=read_text, help="only those of a namespace")
    listing.add_argument("--key", type=read_text, help="only those of a key")
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its value, whose secrets are masked, and its owner's room")
    show.add_argument("id", type=read_id)
    remove = verbs.add_parser("remove", help="remove entries for good")
    remove.add_argument("ids", nargs="+", metavar="id", type=read_id)
    add_operator(remove)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = MemoryEntry.objects.select_related("owner", "tenant").order_by("-pk")
    match options["verb"]:
        case "list":
            names = {name: options[name] for name in ("namespace", "key") if options[name] is not None}
            rows = rows.filter(**names)
            if options["owner"]:
                rows = lookup.owned_by(rows, options["owner"])
            for row in printer.limit_rows(rows, options["limit"]):
                printer.print_line(owned_line(row, columns.MEMORY))
        case "show":
            from tasks_app.operations import memory_acts  # loads the agents

            row = find_row(rows, options["id"], "memory entry", "memory")
            printer.print_line(owned_line(row, columns.MEMORY) | memory_acts.details_of(row))
        case _:
            _remove(printer, options)


def _remove(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.operations import memory_acts  # loads the agents

    rows, by, refusals = MemoryEntry.objects.in_bulk(options["ids"]), read_operator(options), 0
    for id in dict.fromkeys(options["ids"]):
        row = rows.get(id)
        is_done = row is not None and memory_acts.remove(row, by)
        refusals += not is_done
        printer.print_line({"id": id} | ({"done": "remove"} if is_done else {"refused": "There is no such entry."}))
    if refusals:
        raise CommandError(f"{refusals} refused.", returncode=1)


MEMORY = Noun(
    help="list entries of the memory, show one with its value, and remove them",
    add_arguments=_add_arguments,
    handle=_handle,
)
