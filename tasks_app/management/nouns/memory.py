"""`manage.py a2a memory`: entries of the memory as JSON lines."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.arguments import (
    add_ids,
    add_limit,
    add_operator,
    add_window,
    in_window,
    read_ids,
    read_operator,
    read_row_id,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, find_row, owned_line
from tasks_app.models import MemoryEntry
from tasks_app.operators import columns, lookup


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser(
        "list", help="list the entries without their values, newest first; --since and --until compare the expiry"
    )
    listing.add_argument("--owner", type=read_text, help="only those of a principal, such as olga or acme/olga")
    listing.add_argument("--namespace", type=read_text, help="only those of a namespace")
    listing.add_argument("--key", type=read_text, help="only those of a key")
    add_window(listing)
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its value, whose secrets are masked, and its owner's room")
    show.add_argument("id", type=read_row_id)
    remove = verbs.add_parser("remove", help="remove entries for good")
    add_ids(remove)
    add_operator(remove)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = MemoryEntry.objects.select_related("owner", "tenant").order_by("-pk")
    match options["verb"]:
        case "list":
            names = {name: options[name] for name in ("namespace", "key") if options[name] is not None}
            rows = in_window(rows.filter(**names), "expires_at", options)
            if options["owner"] is not None:
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

    ids = list(dict.fromkeys(map(_read_id, read_ids(options["ids"]))))
    rows, by, refusals = MemoryEntry.objects.in_bulk(ids), read_operator(options), 0
    for id in ids:
        row = rows.get(id)
        is_done = row is not None and memory_acts.remove(row, by)
        refusals += not is_done
        printer.print_line({"id": id} | ({"done": "remove"} if is_done else {"refused": "There is no such entry."}))
    if refusals:
        raise CommandError(f"{refusals} of {len(ids)} refused.", returncode=1)


def _read_id(text: str) -> int:
    try:
        return read_row_id(text)
    except ArgumentTypeError as error:
        raise CommandError(f"An id {error}.", returncode=2) from None


MEMORY = Noun(
    help="list entries of the memory, show one with its value, and remove them",
    add_arguments=_add_arguments,
    handle=_handle,
)
