"""`manage.py a2a relays`: the relays of A2A_RELAYS, and the credentials of this server for their remote agents."""

import sys
from argparse import ArgumentParser
from functools import partial
from getpass import getpass
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.management.arguments import add_operator, read_input, read_operator, read_scopes, read_text, read_url
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Relay
from tasks_app.operators.refusals import ActRefused, sentence_of
from tasks_app.relays import acts
from tasks_app.relays.credentials import LONGEST_SCOPES


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="list the relays, with the state of their cards and the kind of their credentials")
    login = verbs.add_parser(
        "login", help="store credentials, sealed; the secret is read from the standard input, or asked for"
    )
    login.add_argument("name", type=read_text, help="the name of the relay")
    login.add_argument(
        "--header", type=read_text, help="send the secret in this header; by default it is a bearer token"
    )
    login.add_argument(
        "--token-url",
        type=read_url,
        help="get tokens here by the client credentials grant of OAuth 2; the secret is the client's",
    )
    login.add_argument("--client-id", type=read_text, help="the client id for the token endpoint")
    login.add_argument(
        "--scopes",
        dest="token_scopes",  # `scopes` are those of this server, and an unknown one is a warning
        metavar="SCOPES",
        type=partial(read_scopes, most=LONGEST_SCOPES),
        help="scopes for the token endpoint, separated by spaces",
    )
    add_operator(login)
    logout = verbs.add_parser("logout", help="delete the credentials of a relay")
    logout.add_argument("name", type=read_text, help="the name of the relay")
    add_operator(logout)


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = Relay.objects.in_bulk(list(settings.A2A_RELAYS))
    for name in settings.A2A_RELAYS:
        printer.print_line(acts.describe(rows.get(name) or Relay(name=name)))


def _login(printer: Printer, options: dict[str, Any]) -> None:
    if options["name"] not in settings.A2A_RELAYS:
        names = ", ".join(settings.A2A_RELAYS) or "none"
        sentence = f"There is no relay {options['name']!r} in A2A_RELAYS; there are: {names}."
        raise CommandError(f"{sentence} Run the command with the setting of the server.")
    wish = acts.Login(
        secret=(getpass("Secret: ") if sys.stdin.isatty() else read_input()).strip(),
        header=options["header"] or "",
        token_url=options["token_url"] or "",
        client_id=options["client_id"] or "",
        token_scopes=options["token_scopes"] or "",
    )
    row, _ = Relay.objects.get_or_create(name=options["name"])
    try:
        acts.log_in(row, wish, read_operator(options))
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(acts.describe(row))


def _logout(printer: Printer, options: dict[str, Any]) -> None:
    row = Relay.objects.filter(pk=options["name"]).first() or Relay(name=options["name"])
    try:
        acts.log_out(row, read_operator(options))
    except ActRefused as refusal:
        raise CommandError(str(refusal)) from None
    printer.print_line(acts.describe(row))


_VERBS = {"list": _list, "login": _login, "logout": _logout}

RELAYS = Noun(
    help="list relays, and store or delete the credentials for their remote agents",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
