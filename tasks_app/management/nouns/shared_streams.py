"""`manage.py a2a shared-streams`: shared streams, with their participants and chunks, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a.shared_streams import SharedStreamState
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
from tasks_app.models import SharedStream
from tasks_app.operators import columns
from tasks_app.shared_streams.details import LIMIT, MOST, details_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the shared streams, newest first")
    listing.add_argument("--state", choices=[state.value for state in SharedStreamState], help="only those in a state")
    add_window(listing)
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its participants and its newest chunks")
    show.add_argument("id", type=read_text)
    show.add_argument(
        "--before",
        type=make_number_reader(1, 2**31 - 1),
        metavar="NUMBER",
        help="print the chunks before this number, instead of the newest",
    )
    show.add_argument(
        "--limit", type=make_number_reader(1, MOST), default=LIMIT, metavar="CHUNKS", help=f"at most {MOST} chunks"
    )
    for name, purpose in (
        ("close", "close shared streams for good"),
        ("pause", "pause shared streams, so that they take no messages"),
        ("resume", "resume shared streams that are paused"),
    ):
        verb = verbs.add_parser(name, help=purpose)
        add_ids(verb)
        add_operator(verb)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = SharedStream.objects.select_related("owner", "tenant").order_by("-pk")
    match options["verb"]:
        case "list":
            selected = rows.filter(state=options["state"]) if options["state"] else rows
            for row in printer.limit_rows(in_window(selected, "created_at", options), options["limit"]):
                printer.print_line(owned_line(row, columns.SHARED_STREAM))
        case "show":
            row = rows.filter(pk=options["id"]).first()
            if row is None:
                raise CommandError(f"There is no shared stream {options['id']}.")
            from tasks_app.webhooks import with_files  # loads the HTTP client

            details = details_of(row, with_files, options["before"], options["limit"])
            printer.print_line(owned_line(row, columns.SHARED_STREAM) | details)
        case verb:
            from tasks_app.operations import shared_stream_acts  # loads the agents

            act_on_ids(printer, options, shared_stream_acts.ACTS[verb])


SHARED_STREAMS = Noun(
    help="list shared streams, show one, and close, pause or resume them",
    add_arguments=_add_arguments,
    handle=_handle,
)
