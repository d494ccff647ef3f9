"""manage.py deliveries: what an operator can do to webhooks and deliveries in the admin. Prints JSON lines."""

from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
from django.core.management.base import CommandError

from tasks_app import deliveries
from tasks_app.deliveries import Refused
from tasks_app.management.commands.tasks import account
from tasks_app.management.operator import DatabaseCommand, limit_of
from tasks_app.models import Delivery, DeliveryTry, PushConfig

HEAD = (
    "id", "config_id", "task_id", "seq", "version", "state", "tries", "status", "error", "created_at", "done_at",
)  # fmt: skip
WEBHOOK = (
    "id", "task_id", "config_id", "version", "url", "schemes", "state", "reason", "due_at", "created_at", "updated_at",
)  # fmt: skip
TRY = ("number", "at", "status", "error", "duration_ms")


class Command(DatabaseCommand):
    help = "Webhooks and their deliveries: list, show, retry, give up. Prints JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="the newest deliveries")
        listing.add_argument("--state", choices=[state for state, _ in Delivery.STATES])
        listing.add_argument("--task", help="of this task only")
        listing.add_argument("--limit", type=limit_of, default=100)
        show = verbs.add_parser("show", help="a delivery with its body and its tries")
        show.add_argument("id")
        for verb, text in (("retry", "try deliveries again, now"), ("give-up", "no more tries of waiting deliveries")):
            verbs.add_parser(verb, help=text).add_argument("ids", nargs="+", metavar="id")
        webhooks = verbs.add_parser("webhooks", help="the newest webhooks, without what is secret")
        webhooks.add_argument("--task", help="of this task only")
        webhooks.add_argument("--limit", type=limit_of, default=100)
        disable = verbs.add_parser("disable", help="no more tries to webhooks")
        disable.add_argument("ids", nargs="+", metavar="webhook")
        disable.add_argument("--operator", default=account(), help="the name that the webhook keeps; your account")
        enable = verbs.add_parser("enable", help="deliver what happens from now on again")
        enable.add_argument("ids", nargs="+", metavar="webhook")
        secret = verbs.add_parser("secret", help="what the deliveries of a webhook are signed with")
        secret.add_argument("id", metavar="webhook")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        match verb:
            case "list":
                self.list(Delivery.objects.all(), HEAD, options)
            case "webhooks":
                self.list(PushConfig.objects.all(), WEBHOOK, options)
            case "show":
                self.show(options["id"])
            case "secret":
                self.each([options["id"]], lambda id: {"secret": deliveries.secret_of(id)})
            case _:
                self.each(options["ids"], partial(_act, self.acts(options)[verb], verb))

    def acts(self, options: dict[str, Any]) -> dict[str, Callable[[str], None]]:
        return {
            "retry": deliveries.send_again,
            "give-up": deliveries.give_up,
            "disable": lambda id: deliveries.disable(id, options["operator"]),
            "enable": deliveries.enable,
        }

    def list(self, rows: Any, columns: tuple[str, ...], options: dict[str, Any]) -> None:
        if options["task"]:
            rows = rows.filter(task_id=options["task"])
        if options.get("state"):
            rows = rows.filter(state=options["state"])
        found = list(rows.order_by("-id").values(*columns)[: options["limit"]])
        for row in found:
            self.line(row | ({"url": deliveries.shown_address(row["url"])} if "url" in row else {}))
        if not found:
            raise CommandError("Nothing matches.", returncode=1)

    def show(self, id: str) -> None:
        found = Delivery.objects.filter(pk=id).values(*HEAD, "body").first()
        if found is None:
            raise CommandError(f"There is no delivery {id!r}, or it is no longer kept.", returncode=1)
        tries = DeliveryTry.objects.filter(delivery_id=id).order_by("id").values(*TRY)
        self.line(found | {"body": deliveries.with_files(found["body"]), "log": list(tries)})

    def each(self, ids: Any, act: Callable[[str], dict[str, Any]]) -> None:
        """Every id is tried; the exit code is 1 if one of them was refused."""
        refused = 0
        for id in ids:
            try:
                self.line({"id": id} | act(id))
            except Refused as error:
                refused += 1
                self.line({"id": id, "refused": str(error)})
        if refused:
            raise CommandError(f"{refused} of {len(ids)} refused.", returncode=1)

    def line(self, value: dict[str, Any]) -> None:
        self.stdout.write(orjson.dumps(value).decode())


def _act(act: Callable[[str], None], verb: str, id: str) -> dict[str, Any]:
    act(id)
    return {"done": verb}
