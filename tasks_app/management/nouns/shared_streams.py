"""`manage.py a2a shared-streams`: shared streams, with their participants and chunks, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a.shared_streams import SharedStreamState
from tasks_app.management.arguments import (
    add_limit,
    add_operator,
    make_number_reader,
    read_ids,
    read_operator,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, owned_line
from tasks_app.models import SharedStream
from tasks_app.operators import columns
from tasks_app.shared_streams.details import LIMIT, MOST, details_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the shared streams, newest first")
    listing.add_argument("--state", choices=[state.value for state in SharedStreamState], help="only those in a state")
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its participants and its newest chunks")
    show.add_argument("id", type=read_text)
    show.add_argument(
        "--before",
        type=make_number_reader(1, 2**31 - 1),
        metavar="NUMBER",
        help="the chunks before a number, in place of the newest",
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
        verb.add_argument(
            "ids", type=read_text, nargs="+", metavar="id", help="the ids, or - to read them from the input"
        )
        add_operator(verb)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = SharedStream.objects.select_related("owner", "tenant").order_by("-pk")
    match options["verb"]:
        case "list":
            selected = rows.filter(state=options["state"]) if options["state"] else rows
            for row in printer.limit_rows(selected, options["limit"]):
                printer.print_line(owned_line(row, columns.SHARED_STREAM))
        case "show":
            row = rows.filter(pk=options["id"]).first()
            if row is None:
                raise CommandError(f"There is no shared stream {options['id']}.")
            printer.print_line(
                owned_line(row, columns.SHARED_STREAM) | details_of(row, options["before"], options["limit"])
            )
        case _:
            _act(printer, options)


def _act(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.operations import shared_stream_acts  # loads the agents
    from tasks_app.webhooks import one_by_one

    act = one_by_one(shared_stream_acts.ACTS[options["verb"]])
    answers = act(read_ids(options["ids"]), read_operator(options))
    for id, answer in answers.items():
        printer.print_line({"id": id} | ({"refused": answer.refusal} if answer.refusal else {"done": options["verb"]}))
    if refusals := sum(bool(answer.refusal) for answer in answers.values()):
        raise CommandError(f"{refusals} of {len(answers)} refused.", returncode=1)


SHARED_STREAMS = Noun(
    help="list shared streams, show one, and close, pause or resume them",
    add_arguments=_add_arguments,
    handle=_handle,
)
