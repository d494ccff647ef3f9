"""manage.py a2a: make, list and revoke API keys, as JSON lines; make a key that signs agent cards, as PEM."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from a2a.signatures import ALGORITHMS, new_key
from tasks_app import access, clock
from tasks_app.management.operator import DatabaseCommand, name_of, scopes_of, takes_limit, takes_operator, write_down
from tasks_app.models import ApiKey
from tasks_app.paths import check_tenant_name


class Command(DatabaseCommand):
    help = "API keys: make, list, revoke, as JSON lines. A key to sign agent cards with, as PEM."
    requires_migrations_checks = False  # only keys are rows

    def add_arguments(self, parser: ArgumentParser) -> None:
        nouns = parser.add_subparsers(dest="noun", required=True)
        card = nouns.add_parser("cardkey", help="print a new key for A2A_CARD_KEY; it is kept nowhere")
        card.add_argument("--algorithm", choices=sorted(ALGORITHMS), default="ES256")
        keys = nouns.add_parser("keys", help="API keys")
        verbs = keys.add_subparsers(dest="verb", required=True)
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

    def handle(self, *args: Any, **options: Any) -> None:
        if options["noun"] == "cardkey":
            self.stdout.write(new_key(options["algorithm"]), ending="")
            return
        self.check_migrations()
        {"create": self._create, "list": self._list, "revoke": self._revoke}[options["verb"]](options)

    def _create(self, options: dict[str, Any]) -> None:
        days = options["days"]
        if days is not None and not 0 < days < 36_500:
            raise CommandError("--days must be above 0, and a century at most.")
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
            made = ApiKey.objects.select_related("principal__tenant").get(digest=access.digests(key)[0])
            write_down(options["operator"], made, "Made", new=True)
        self.line(shown(made) | {"key": key})

    def _list(self, options: dict[str, Any]) -> None:
        for key in ApiKey.objects.select_related("principal__tenant").order_by("-id")[: options["limit"]]:
            self.line(shown(key))

    def _revoke(self, options: dict[str, Any]) -> None:
        keys = ApiKey.objects.select_related("principal__tenant").filter(pk=options["id"])
        if not keys:
            raise CommandError(f"There is no key {options['id']}; see `manage.py a2a keys list`.")
        with transaction.atomic():
            ended = access.revoke(keys)
            key = keys.get()
            if ended:
                write_down(options["operator"], key, "Revoked")
        self.line(shown(key))


def shown(key: ApiKey) -> dict[str, Any]:
    """What may be seen of a key."""
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
