"""`manage.py a2a operators`: the tokens by which programs of operators use the operators' API, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from tasks_app.management.arguments import (
    add_limit,
    add_operator,
    make_number_reader,
    read_name,
    read_operator,
    read_row_id,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, find_row, report_unchanged
from tasks_app.models import OperatorToken
from tasks_app.operators import second_factor, tokens, users


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    token = verbs.add_parser("token", help="make a token of an operator and print it; it cannot be printed again")
    token.add_argument(
        "user", type=read_text, metavar="name", help="the name of the operator, as printed by `users list`"
    )
    token.add_argument("--name", type=read_name, default="command line", help="the program that will use it")
    token.add_argument(
        "--code",
        type=read_text,
        default="",
        help="a code of the operator's second factor; needed where A2A_SECOND_FACTOR is on",
    )
    token.add_argument(
        "--days",
        type=make_number_reader(1, tokens.MOST_DAYS),
        default=tokens.DAYS,
        help=f"days until it expires; {tokens.DAYS} by default",
    )
    token.add_argument(
        "--administer",
        action="store_true",
        help="let it give rights, such as roles, OAuth clients, and keys that do more than read",
    )
    add_operator(token)
    add_limit(verbs.add_parser("list", help="list the newest tokens"))
    revoke = verbs.add_parser("revoke", help="revoke a token at once")
    revoke.add_argument("id", type=read_row_id, help="the id of the token, as printed by `operators list`")
    add_operator(revoke)


def _make(printer: Printer, options: dict[str, Any]) -> None:
    try:
        user = users.find_user(options["user"])
        if refusal := tokens.find_refusal(user):  # before a code is spent on it
            raise CommandError(refusal)
        _check_code(user, options["code"])
        name, days, by = options["name"], options["days"], read_operator(options)
        row, token = tokens.make_token(user, name, days, by, administers=options["administer"])
    except (users.UserRefused, tokens.TokenRefused) as refusal:
        raise CommandError(str(refusal)) from None
    printer.print_line(_describe(row) | {"token": token})


def _check_code(user: User, code: str) -> None:
    if not settings.A2A_SECOND_FACTOR:
        return
    if not second_factor.has_device(user):
        raise CommandError(f"{user.username} has no second factor yet: the first login to the admin enrols one.")
    if not second_factor.verify(user, code):
        raise CommandError(
            "--code must be a code that the operator's app shows now, or a recovery code; each works once."
        )


def _list(printer: Printer, options: dict[str, Any]) -> None:
    for row in printer.limit_rows(OperatorToken.objects.select_related("user").order_by("-id"), options["limit"]):
        printer.print_line(_describe(row))


def _revoke(printer: Printer, options: dict[str, Any]) -> None:
    row = find_row(OperatorToken.objects.select_related("user"), options["id"], "token", "operators")
    if not tokens.revoke(row, read_operator(options)):
        report_unchanged(printer, f"token {row.pk}", "revoked already")
    printer.print_line(_describe(row))


def _describe(row: OperatorToken) -> dict[str, Any]:
    """Return the columns of a token that operators may see."""
    columns = ("id", "name", "prefix", "created_at", "expires_at", "revoked_at", "used_at", "administers")
    return {"user": row.user.get_username()} | {name: getattr(row, name) for name in columns}


_VERBS = {"token": _make, "list": _list, "revoke": _revoke}

OPERATORS = Noun(
    help="make, list and revoke tokens of the operators' API",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
