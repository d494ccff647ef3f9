"""`manage.py a2a relays`: the relays of A2A_RELAYS, and the credentials of this server for their remote agents."""

import sys
from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction

from tasks_app.management.arguments import add_operator, read_input, read_operator, read_scopes, read_text
from tasks_app.management.nouns import Noun, Printer
from tasks_app.masking import site
from tasks_app.models import Relay, RelayedTask
from tasks_app.operators.audit import Change, record_acts


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
        type=read_text,
        help="get tokens here by the client credentials grant of OAuth 2; the secret is the client's",
    )
    login.add_argument("--client-id", type=read_text, help="the client id for the token endpoint")
    login.add_argument(
        "--scopes",
        dest="token_scopes",  # `scopes` are those of this server, and an unknown one is a warning
        metavar="SCOPES",
        type=read_scopes,
        help="scopes for the token endpoint, separated by spaces",
    )
    add_operator(login)
    logout = verbs.add_parser("logout", help="delete the credentials of a relay")
    logout.add_argument("name", type=read_text, help="the name of the relay")
    add_operator(logout)


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = Relay.objects.in_bulk(list(settings.A2A_RELAYS))
    for name, relay in settings.A2A_RELAYS.items():
        row = rows.get(name) or Relay(name=name)
        printer.print_line(_describe(row) | {"url": site(relay["url"])} | _counts(name))


def _counts(name: str) -> dict[str, Any]:
    return {"open_tasks": RelayedTask.objects.filter(relay=name, is_open=True).count()}


def _describe(row: Relay) -> dict[str, Any]:
    """Return the columns of a relay that operators may see."""
    return {
        "name": row.name,
        "credentials": _kind(row),
        "card_read_at": row.read_at,
        "card_due_at": row.due_at,
        "problem": row.problem,
    }


def _kind(row: Relay) -> str:
    """Return the kind of the credentials; empty for none."""
    from tasks_app.relays.credentials import open_credentials  # loads the libraries of cryptography
    from tasks_app.sealing import Unreadable

    try:
        return open_credentials(row.credentials).kind if row.credentials else ""
    except Unreadable:
        return "unreadable"


def _login(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.relays.credentials import StoredCredentials

    _check_name(options["name"])
    if bool(options["token_url"]) is not bool(options["client_id"]):
        raise CommandError("--token-url and --client-id belong together.")
    if options["token_url"] and options["header"]:
        raise CommandError("--header and --token-url exclude each other.")
    secret = _read_secret()
    stored = StoredCredentials(
        kind="oauth" if options["token_url"] else "header" if options["header"] else "bearer",
        secret=secret,
        header=options["header"] or "",
        token_url=options["token_url"] or "",
        client_id=options["client_id"] or "",
        scopes=tuple((options["token_scopes"] or "").split()),
    )
    _store(printer, options, stored.sealed())


def _read_secret() -> str:
    """Return the secret from the terminal, without an echo, or from the standard input."""
    secret = (getpass("Secret: ") if sys.stdin.isatty() else read_input()).strip()
    if not secret or not secret.isascii() or not secret.isprintable():
        raise CommandError("The secret is empty, or has characters that no HTTP header can carry.")
    return secret


def _logout(printer: Printer, options: dict[str, Any]) -> None:
    if not Relay.objects.filter(pk=options["name"]).exclude(credentials="").exists():
        raise CommandError(f"The relay {options['name']!r} has no credentials; `manage.py a2a relays list` prints all.")
    _store(printer, options, "")


def _store(printer: Printer, options: dict[str, Any], sealed: str) -> None:
    with transaction.atomic():  # no change without its act
        row, _ = Relay.objects.get_or_create(name=options["name"])
        before = _kind(row)
        row.credentials, row.due_at = sealed, None  # The card is read again, now with these credentials.
        row.save(update_fields=["credentials", "due_at"])
        change = Change(row, {"credentials": before}, {"credentials": _kind(row)})
        record_acts(read_operator(options), options["verb"], change)
    printer.print_line(_describe(row))


def _check_name(name: str) -> None:
    if name not in settings.A2A_RELAYS:
        names = ", ".join(settings.A2A_RELAYS) or "none"
        sentence = f"There is no relay {name!r} in A2A_RELAYS; there are: {names}."
        raise CommandError(f"{sentence} Run the command with the setting of the server.")


_VERBS = {"list": _list, "login": _login, "logout": _logout}

RELAYS = Noun(
    help="list relays, and store or delete the credentials for their remote agents",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
