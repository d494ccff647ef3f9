"""`manage.py a2a batches`: batches, with their items and the tasks of these, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from tasks_app.batches.details import LIMIT, MOST, STATES, details_of, in_state, with_states
from tasks_app.management.arguments import (
    add_ids,
    add_limit,
    add_operator,
    add_window,
    in_window,
    make_number_reader,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, act_on_ids, owned_line
from tasks_app.models import Batch
from tasks_app.operators import columns, lookup


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the batches, newest first")
    listing.add_argument("--state", choices=[state.value for state in STATES], help="only those in a state")
    listing.add_argument("--owner", type=read_text, help="only those of a principal, such as olga or acme/olga")
    add_window(listing)
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its first items")
    show.add_argument("id", type=read_text)
    show.add_argument(
        "--after",
        type=make_number_reader(1, 999_999_999),
        default=0,
        metavar="NUMBER",
        help="skip this many items",
    )
    show.add_argument(
        "--limit", type=make_number_reader(1, MOST), default=LIMIT, metavar="ITEMS", help=f"at most {MOST} items"
    )
    cancel = verbs.add_parser("cancel", help="cancel batches with their items at work")
    add_ids(cancel)
    add_operator(cancel)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = with_states(Batch.objects.select_related("owner", "tenant").order_by("-pk"))
    match options["verb"]:
        case "list":
            if options["state"]:
                rows = in_state(rows, options["state"])
            if options["owner"] is not None:
                rows = lookup.owned_by(rows, options["owner"])
            for row in printer.limit_rows(in_window(rows, "created_at", options), options["limit"]):
                printer.print_line(owned_line(row, columns.BATCH))
        case "show":
            row = rows.filter(pk=options["id"]).first()
            if row is None:
                raise CommandError(f"There is no batch {options['id']}.")
            printer.print_line(owned_line(row, columns.BATCH) | details_of(row, options["after"], options["limit"]))
        case _:
            from tasks_app.operations import batch_acts  # loads the agents

            act_on_ids(printer, options, batch_acts.cancel)


BATCHES = Noun(
    help="list batches, show one with its items, and cancel them",
    add_arguments=_add_arguments,
    handle=_handle,
)
