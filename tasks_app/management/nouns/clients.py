"""`manage.py a2a clients`: the clients of our own OAuth server, with JSON lines as output."""

from argparse import ArgumentParser
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.callers.scopes import ACP, OWN
from tasks_app.management.arguments import (
    add_holder,
    add_limit,
    add_operator,
    make_number_reader,
    read_name,
    read_operator,
    read_row_id,
    read_scopes,
    read_url,
)
from tasks_app.management.nouns import Noun, Printer, find_row, held_by, report_unchanged
from tasks_app.models import OAuthClient
from tasks_app.models.clients import AUTHORIZATION_CODE, CLIENT_CREDENTIALS
from tasks_app.oauth import clients
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import sentence_of

OVERLAP_HOURS = 24
"""Hours for which the former secret stays valid by default."""


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("add", help="add a client and print its secret; it cannot be printed again")
    _add_client(add)
    add_operator(add)
    listing = verbs.add_parser("list", help="list the newest clients")
    add_holder(listing)
    add_limit(listing)
    change = verbs.add_parser(
        "change", help="set the scopes or the redirect addresses of a client, those that are given"
    )
    change.add_argument("--scopes", type=read_scopes, help="the most scopes of its tokens, separated by spaces")
    change.add_argument(
        "--redirect",
        type=read_url,
        action="append",
        metavar="URI",
        help="an address to which a browser returns after the approval, in place of those from before; may be repeated",
    )
    _add_id(change)
    rotate = verbs.add_parser("rotate", help="give a client a new secret and print it")
    rotate.add_argument(
        "--overlap-hours",
        type=make_number_reader(0, 8760),
        default=OVERLAP_HOURS,
        metavar="HOURS",
        help=f"hours for which the former secret stays valid; {OVERLAP_HOURS} by default",
    )
    _add_id(rotate)
    _add_id(verbs.add_parser("disable", help="refuse a client and its tokens until it is enabled again"))
    _add_id(verbs.add_parser("enable", help="accept a disabled client and its tokens again"))
    _add_id(verbs.add_parser("revoke", help="refuse a client for ever and delete its tokens"))


def _add_client(parser: ArgumentParser) -> None:
    """Add the arguments of a new client."""
    parser.add_argument(
        "name", type=read_name, help="the name of the program, which operators see when they approve it"
    )
    parser.add_argument(
        "--principal", type=read_name, required=True, help="the principal in whose name its tokens call; created if new"
    )
    parser.add_argument(
        "--tenant", type=read_name, default="default", help='the tenant of the principal; "default" by default'
    )
    parser.add_argument(
        "--scopes",
        type=read_scopes,
        required=True,
        help=f"the most scopes of its tokens, separated by spaces: {' '.join([*OWN, *ACP])} and the agents' own",
    )
    parser.add_argument(
        "--grant",
        choices=[CLIENT_CREDENTIALS, AUTHORIZATION_CODE],
        default=CLIENT_CREDENTIALS,
        help="the way to its tokens: by its secret alone (by default), or by the approval of an operator",
    )
    parser.add_argument(
        "--redirect",
        type=read_url,
        action="append",
        default=[],
        metavar="URI",
        help="an address to which a browser returns after the approval; may be repeated",
    )
    parser.add_argument(
        "--public", action="store_true", help="no secret, for a program on its user's machine or in a browser"
    )


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", type=read_row_id, help="the id of the client, as printed by `clients list`")
    add_operator(parser)


def _add(printer: Printer, options: dict[str, Any]) -> None:
    wish = clients.NewClient(
        name=options["name"],
        principal=options["principal"],
        tenant=options["tenant"],
        grant=options["grant"],
        scopes=options["scopes"],
        redirect_uris=options["redirect"],
        public=options["public"],
    )
    try:
        client, secret = clients.add(wish, read_operator(options))
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(clients.describe(client) | ({"client_secret": secret} if secret else {}))


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = OAuthClient.objects.select_related("principal__tenant").order_by("-id")
    for client in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(clients.describe(client))


def _rotate(printer: Printer, options: dict[str, Any]) -> None:
    client = _find(options)
    try:
        secret = clients.rotate(client, read_operator(options), timedelta(hours=options["overlap_hours"]))
    except ValueError as error:
        raise CommandError(f"Client {client.pk}: {error}.") from None
    printer.print_line(clients.describe(client) | {"client_secret": secret})


def _change(printer: Printer, options: dict[str, Any]) -> None:
    if options["scopes"] is None and options["redirect"] is None:
        raise CommandError("Give --scopes or --redirect.")
    client = _find(options)
    try:
        is_new = clients.change(client, read_operator(options), options["scopes"], options["redirect"])
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    if not is_new:
        report_unchanged(printer, f"client {client.pk}", "set to these values already")
    printer.print_line(clients.describe(client))


def _alone(verb: Callable[[OAuthClient, Operator], bool], state: str) -> Callable[[Printer, dict[str, Any]], None]:
    """Return the function of a verb which takes a client alone, and changes none in this state."""

    def handle(printer: Printer, options: dict[str, Any]) -> None:
        client = _find(options)
        if not verb(client, read_operator(options)):
            report_unchanged(printer, f"client {client.pk}", state)
        printer.print_line(clients.describe(client))

    return handle


def _find(options: dict[str, Any]) -> OAuthClient:
    return find_row(OAuthClient.objects.select_related("principal__tenant"), options["id"], "client", "clients")


_VERBS = {
    "add": _add,
    "list": _list,
    "change": _change,
    "rotate": _rotate,
    "disable": _alone(clients.disable, "disabled or revoked already"),
    "enable": _alone(clients.enable, "not disabled, or it is revoked"),
    "revoke": _alone(clients.revoke, "revoked already"),
}


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if not settings.A2A_OAUTH:
        raise CommandError("The OAuth server is off, so it has no clients: set A2A_OAUTH=true (docs/identity.md).")
    _VERBS[options["verb"]](printer, options)


CLIENTS = Noun(
    help="add, list, change, rotate, disable and revoke clients of the OAuth server",
    add_arguments=_add_arguments,
    handle=_handle,
)
