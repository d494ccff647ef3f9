"""`manage.py a2a keys`: make, list and revoke API keys, as JSON lines."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.paths import check_tenant_name
from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import by, name_of, scopes_of, takes_limit, takes_operator
from tasks_app.models import ApiKey
from tasks_app.operators.audit import Change, record_acts


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="make a key; it is shown this once")
    create.add_argument("principal", type=name_of, help="who owns what is done with it; made if new")
    create.add_argument("--tenant", type=name_of, default="default")
    create.add_argument("--name", type=name_of, help="for people to tell keys apart; the principal's if left out")
    create.add_argument(
        "--scopes", type=scopes_of, default="*", help=f"* or some of {' '.join(access.SCOPES)}, and agents' own"
    )
    create.add_argument("--days", type=float, help="until it expires; for ever if left out")
    takes_operator(create)
    takes_limit(verbs.add_parser("list", help="the newest keys"))
    revoke = verbs.add_parser("revoke", help="end a key at once")
    revoke.add_argument("id", type=int, help="as `keys list` shows it")
    takes_operator(revoke)


def _create(printer: Printer, options: dict[str, Any]) -> None:
    days = options["days"]
    if days is not None and not 0 < days < 36_500:
        raise CommandError("--days must be above 0, and a century at most.")
    if (options["principal"], options["name"]) == (access.DEVELOPER, access.DEVELOPMENT):
        raise CommandError("Keys of developer named development are those that `manage.py run` makes: choose another.")
    try:
        check_tenant_name(options["tenant"])
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    with transaction.atomic():  # no key without a trace of who made it
        key = access.new_key(
            options["principal"],
            tenant=options["tenant"],
            name=options["name"] or "",
            scopes=options["scopes"],
            expires_at=None if days is None else clock.now() + timedelta(days=days),
        )
        row = ApiKey.objects.select_related("principal__tenant").get(digest=access.digests(key)[0])
        record_acts(by(options), "make", Change(row, {}, {"scopes": row.scopes, "expires_at": row.expires_at}))
    printer.line(_shown(row) | {"key": key})


def _list(printer: Printer, options: dict[str, Any]) -> None:
    for key in printer.newest(ApiKey.objects.select_related("principal__tenant").order_by("-id"), options["limit"]):
        printer.line(_shown(key))


def _revoke(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.webhooks.keys import revoke  # with an HTTP client, which no other noun needs

    key = ApiKey.objects.select_related("principal__tenant").filter(pk=options["id"]).first()
    if key is None:
        raise CommandError(f"There is no key {options['id']}; see `manage.py a2a keys list`.")
    webhooks = revoke(key, by(options)) or 0
    printer.line(_shown(key) | {"webhooks": webhooks})


def _shown(key: ApiKey) -> dict[str, Any]:
    """Return what operators may see of a key."""
    return {
        "id": key.pk,
        "name": key.name,
        "prefix": key.prefix,
        "principal": key.principal.name,
        "tenant": key.principal.tenant.name,
        "scopes": key.scopes,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }


_VERBS = {"create": _create, "list": _list, "revoke": _revoke}

KEYS = Noun(
    help="API keys",
    add_arguments=_add_arguments,
    handle=lambda printer, options: _VERBS[options["verb"]](printer, options),
)
