"""`manage.py a2a keys`: create, list, rotate and revoke API keys, with JSON lines as output."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from a2a import languages
from tasks_app.callers import scopes
from tasks_app.callers.networks import MOST
from tasks_app.management.arguments import (
    UNITS,
    add_holder,
    add_limit,
    add_operator,
    read_days,
    read_name,
    read_operator,
    read_row_id,
    read_scopes,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, find_row, held_by, report_unchanged
from tasks_app.models import ApiKey
from tasks_app.operators.keys import find_key, make_key, rotate_key
from tasks_app.operators.refusals import sentence_of

LONGEST_NETWORKS = MOST * 64
"""Characters of the networks of a key, at most. The longest notation of a network has 49, and separators follow it."""


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="create a key and print it; it cannot be printed again")
    _add_key(create)
    add_operator(create)
    listing = verbs.add_parser("list", help="list the newest keys")
    add_holder(listing)
    add_limit(listing)
    revoke = verbs.add_parser("revoke", help="revoke a key at once")
    revoke.add_argument("id", type=read_row_id, help="the id of the key, as printed by `keys list`")
    add_operator(revoke)
    rotate = verbs.add_parser(
        "rotate", help="make a key with the rights of another, which expires after an overlap, and print it"
    )
    rotate.add_argument("key", type=read_name, metavar="NAME", help="the name of the key, or its id")
    rotate.add_argument(
        "--overlap",
        type=_read_hours,
        default=24.0,
        metavar="AGE",
        help="the overlap, such as 30m or 7d; 24h by default",
    )
    add_operator(rotate)


def _add_key(parser: ArgumentParser) -> None:
    """Add the arguments of a new key."""
    parser.add_argument(
        "principal", type=read_name, help="the principal that owns the tasks of the key; created if it does not exist"
    )
    parser.add_argument(
        "--tenant", type=read_name, default="default", help='the tenant of the principal; "default" by default'
    )
    parser.add_argument("--name", type=read_name, help="a name to tell keys apart; the principal's name by default")
    parser.add_argument(
        "--scopes",
        type=read_scopes,
        default="*",
        help=f"scopes separated by spaces: {' '.join(scopes.OWN)}, those of ACP and of agents; * (all) by default",
    )
    parser.add_argument("--days", type=read_days, help="days until the key expires; it never expires by default")
    parser.add_argument(
        "--language",
        type=read_name,
        metavar="NAME",
        help="the language of calls that name no version, if it has their method: "
        f"{', '.join(languages.ALL.pinnable)}; by default the method decides",
    )
    parser.add_argument(
        "--networks",
        type=_read_networks,
        metavar="CIDR",
        help='networks that calls may come from, such as "10.1.0.0/16 2001:db8::/32"; by default any',
    )


def _read_networks(text: str) -> str:
    """Read networks. An empty text, such as that of a variable without a value, must not make a key for any network."""
    if not text.strip():
        raise ArgumentTypeError("must name a network; leave the option out for any")
    return read_text(text, LONGEST_NETWORKS)


def _read_hours(text: str) -> float:
    """Read an age such as 24h as hours."""
    age = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    if age is None:
        raise ArgumentTypeError(f"must be an age such as 30m, 24h or 7d: {text[:70]!r}")
    return timedelta(**{UNITS[age[2]]: int(age[1])}) / timedelta(hours=1)


def _create(printer: Printer, options: dict[str, Any]) -> None:
    names = ("tenant", "scopes", "language", "days")
    try:
        row, key = make_key(
            read_operator(options),
            options["principal"],
            name=options["name"] or "",
            networks=options["networks"] or "",
            **{name: options[name] for name in names},
        )
    except ValueError as error:
        raise CommandError(sentence_of(error).replace("Days must", "--days must")) from None
    printer.print_line(_describe(row) | {"key": key})


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = ApiKey.objects.select_related("principal__tenant").order_by("-id")
    for key in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(_describe(key))


def _revoke(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.webhooks.keys import revoke  # loads the HTTP client, which no other noun needs

    key = find_row(ApiKey.objects.select_related("principal__tenant"), options["id"], "key", "keys")
    webhooks = revoke(key, read_operator(options))
    if webhooks is None:
        report_unchanged(printer, f"key {key.pk}", "revoked already")
    printer.print_line(_describe(key) | {"webhooks": webhooks or 0})


def _rotate(printer: Printer, options: dict[str, Any]) -> None:
    try:
        row, key = rotate_key(read_operator(options), find_key(options["key"]), options["overlap"])
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(_describe(row) | {"key": key})


def _describe(key: ApiKey) -> dict[str, Any]:
    """Return the columns of a key that operators may see."""
    return {
        "id": key.pk,
        "name": key.name,
        "prefix": key.prefix,
        "principal": key.principal.name,
        "tenant": key.principal.tenant.name,
        "scopes": key.scopes,
        "language": key.language,
        "networks": key.networks,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }


_VERBS = {"create": _create, "list": _list, "revoke": _revoke, "rotate": _rotate}

KEYS = Noun(
    help="create, list, rotate and revoke API keys",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
