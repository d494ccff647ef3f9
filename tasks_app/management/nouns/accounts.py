"""`manage.py a2a accounts`: the service accounts of tokens and certificates, with JSON lines as output."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from tasks_app.callers.scopes import OWN
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.management.arguments import (
    add_holder,
    add_limit,
    add_operator,
    read_name,
    read_operator,
    read_row_id,
    read_scopes,
    read_text,
    read_time,
)
from tasks_app.management.nouns import Noun, Printer, find_row, held_by, report_unchanged
from tasks_app.models import ServiceAccount
from tasks_app.operators import accounts
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import sentence_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("add", help="register an account for the subject of tokens or of a certificate")
    add.add_argument("issuer", type=read_text, help=f"the `iss` of its tokens, as in A2A_ISSUERS; or {CERTIFICATE}")
    add.add_argument(
        "subject", type=read_text, help="the `sub` of its tokens; or sha256:, uri:, dns:, email: or dn: and a name"
    )
    add.add_argument(
        "--principal", type=read_name, required=True, help="the principal in whose name it calls; created if new"
    )
    add.add_argument(
        "--tenant", type=read_name, default="default", help='the tenant of the principal; "default" by default'
    )
    add.add_argument(
        "--scopes",
        type=read_scopes,
        default="*",
        help=f"the most scopes that it may have: {' '.join(OWN)}, those of ACP and of agents; * (all) by default",
    )
    add.add_argument(
        "--language", type=read_name, metavar="NAME", help="the language of calls that name no version, as of a key"
    )
    add_operator(add)
    listing = verbs.add_parser("list", help="list the newest accounts")
    add_holder(listing)
    add_limit(listing)
    change = verbs.add_parser("change", help="set the most scopes of an account, in place of those from before")
    change.add_argument("--scopes", type=read_scopes, required=True, help="the most scopes that it may have; * is all")
    _add_id(change)
    _add_id(verbs.add_parser("disable", help="refuse an account until it is enabled again"))
    _add_id(verbs.add_parser("enable", help="accept a disabled account again"))
    not_before = verbs.add_parser("not-before", help="refuse all tokens of an account that were issued until now")
    not_before.add_argument("--time", type=read_time, help="refuse those that were issued before this time instead")
    _add_id(not_before)


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", type=read_row_id, help="the id of the account, as printed by `accounts list`")
    add_operator(parser)


def _add(printer: Printer, options: dict[str, Any]) -> None:
    more = {name: options[name] for name in ("principal", "tenant", "scopes", "language")}
    try:
        row = accounts.add(options["issuer"], options["subject"], read_operator(options), **more)
    except (ValueError, ImproperlyConfigured) as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(accounts.describe(row))


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = ServiceAccount.objects.select_related("principal__tenant").order_by("-id")
    for row in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(accounts.describe(row))


def _change(printer: Printer, options: dict[str, Any]) -> None:
    row = _find(options)
    if not accounts.change(row, read_operator(options), options["scopes"]):
        report_unchanged(printer, f"account {row.pk}", "limited to these scopes already")
    printer.print_line(accounts.describe(row))


def _alone(verb: Callable[[ServiceAccount, Operator], bool], state: str) -> Callable[[Printer, dict[str, Any]], None]:
    """Return the function of a verb which takes an account alone, and changes none in this state."""

    def handle(printer: Printer, options: dict[str, Any]) -> None:
        row = _find(options)
        if not verb(row, read_operator(options)):
            report_unchanged(printer, f"account {row.pk}", state)
        printer.print_line(accounts.describe(row))

    return handle


def _not_before(printer: Printer, options: dict[str, Any]) -> None:
    row = _find(options)
    try:
        is_new = accounts.set_not_before(row, read_operator(options), options["time"])
    except ValueError as error:
        raise CommandError(f"Account {row.pk}: {error}.") from None
    if not is_new:
        report_unchanged(printer, f"account {row.pk}", "limited to tokens of an equal or later time already")
    printer.print_line(accounts.describe(row))


def _find(options: dict[str, Any]) -> ServiceAccount:
    return find_row(ServiceAccount.objects.select_related("principal__tenant"), options["id"], "account", "accounts")


_VERBS = {
    "add": _add,
    "list": _list,
    "change": _change,
    "disable": _alone(accounts.disable, "disabled already"),
    "enable": _alone(accounts.enable, "not disabled"),
    "not-before": _not_before,
}

ACCOUNTS = Noun(
    help="register, list, change, disable and enable service accounts, and refuse their former tokens",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
