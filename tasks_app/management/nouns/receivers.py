"""`manage.py a2a receivers`: the receivers of webhooks and their answers to the handshake, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.arguments import add_ids, add_limit, add_operator, add_window, in_window
from tasks_app.management.nouns import Noun, Printer, act_on_ids
from tasks_app.models import Receiver


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the receivers, newest first, with the reason why one has not agreed")
    listing.add_argument("--waiting", action="store_true", help="only those that have not agreed")
    add_window(listing)
    add_limit(listing)
    for name, purpose in (
        ("agree", "agree for receivers that know no handshake, and send what waits for them"),
        ("forget", "forget answers, so that the receivers are asked before their next deliveries"),
    ):
        verb = verbs.add_parser(name, help=purpose)
        add_ids(verb)
        add_operator(verb)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "list":
        _list(printer, options)
        return
    from tasks_app import webhooks  # loads the HTTP client

    act_on_ids(printer, options, {"agree": webhooks.agree, "forget": webhooks.forget}[options["verb"]])


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = in_window(Receiver.objects.select_related("owner__tenant").order_by("-id"), "asked_at", options)
    for row in printer.limit_rows(rows.filter(agreed_at=None) if options["waiting"] else rows, options["limit"]):
        printer.print_line(
            {
                "id": row.pk,
                "site": row.site,
                "principal": row.owner.name,
                "tenant": row.owner.tenant.name,
                "agreed_at": row.agreed_at,
                "asked_at": row.asked_at,
                "expires_at": row.expires_at,
                "problem": row.problem,
            }
        )


RECEIVERS = Noun(
    help="list receivers of webhooks, agree for them, or forget their answers",
    add_arguments=_add_arguments,
    handle=_handle,
)
