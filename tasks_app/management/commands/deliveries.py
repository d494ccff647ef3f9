"""manage.py deliveries: the admin's lists and actions for webhooks and deliveries, with JSON lines as output."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.management.base import CommandError
from django.db.models import Model

from a2a.notices import names_of
from tasks_app import webhooks
from tasks_app.management.arguments import (
    add_examples,
    add_ids,
    add_limit,
    add_operator,
    add_window,
    in_window,
    read_ids,
    read_operator,
    read_row_id,
    read_text,
)
from tasks_app.management.database_command import DatabaseCommand
from tasks_app.models import Delivery, DeliveryTry, Webhook
from tasks_app.models.webhooks import language_of
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused
from tasks_app.sealing import site_of
from tasks_app.webhooks import Answer

WEBHOOK = ("id", "task_id", "name", "version", "language", "notices", "url", *columns.WEBHOOK)


class Verb(NamedTuple):
    """A subcommand that acts on rows."""

    model: type[Model]
    do: Callable[[list[str], Operator], Mapping[str, Answer]]
    help: str


VERBS = {
    "retry": Verb(Delivery, webhooks.send_again, "send deliveries again now, for each webhook in the order of events"),
    "give-up": Verb(Delivery, webhooks.one_by_one(webhooks.give_up), "give up waiting deliveries"),
    "disable": Verb(
        Webhook, webhooks.one_by_one(webhooks.disable), "disable webhooks and give up their waiting deliveries"
    ),
    "enable": Verb(Webhook, webhooks.one_by_one(webhooks.enable), "enable webhooks for events from now on"),
}


class Command(DatabaseCommand):
    help = "List webhooks and deliveries, send deliveries again or give them up, disable and enable webhooks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "deliveries list --state dead",
            "deliveries list --state dead --limit 10000 | jq -r .id | manage.py deliveries retry -",
            'deliveries disable WEBHOOK_ID --reason "the receiver no longer exists"',
        )
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="list the newest deliveries")
        listing.add_argument("--state", choices=[state for state, _ in Delivery.STATES], help="only in this state")
        listing.add_argument("--task", type=read_text, metavar="TASK_ID", help="only of this task")
        listing.add_argument("--webhook", type=read_text, metavar="WEBHOOK_ID", help="only to this webhook")
        add_window(listing)
        add_limit(listing)
        show = verbs.add_parser("show", help="show a delivery with its body and its tries")
        show.add_argument("id", type=read_text, help="the id of the delivery")
        webhooks = verbs.add_parser("webhooks", help="list the newest webhooks, without their secrets")
        webhooks.add_argument("--state", choices=[state for state, _ in Webhook.STATES], help="only in this state")
        webhooks.add_argument("--task", type=read_text, metavar="TASK_ID", help="only of this task")
        webhooks.add_argument(
            "--host", type=read_text, help="only with this host in the address, such as hooks.example.com"
        )
        webhooks.add_argument("--key", type=read_row_id, metavar="KEY_ID", help="only registered with this API key")
        webhooks.add_argument(
            "--credential", type=read_text, help="only registered with this credential, such as oidc:3"
        )
        add_window(webhooks)
        add_limit(webhooks)
        for name, verb in VERBS.items():
            parser = verbs.add_parser(name, help=verb.help)
            metavar = "id" if verb.model is Delivery else "webhook_id"
            add_ids(parser, metavar)
            add_operator(parser)
        secret = verbs.add_parser("secret", help="print the secret that signs the deliveries of a webhook")
        secret.add_argument("id", type=read_text, metavar="webhook_id", help="the id of the webhook")
        add_operator(secret)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        match verb:
            case "list":
                self.list(Delivery.objects.values(*columns.DELIVERY), options)
            case "webhooks":
                self.list(Webhook.objects.values(*WEBHOOK), options)
            case "show":
                self.show(options["id"])
            case "secret":
                self.print_answers("webhook_id", _read_secret(read_operator(options), options["id"]))
            case _:
                name = "id" if VERBS[verb].model is Delivery else "webhook_id"
                self.print_answers(name, _act(verb, read_operator(options), read_ids(options["ids"])))

    def list(self, rows: Any, options: dict[str, Any]) -> None:
        columns = {"state": "state", "task": "task_id", "webhook": "webhook_id", "host": "host", "key": "key_id"}
        columns["credential"] = "caller_credential"
        values = {column: options[name] for name, column in columns.items() if options.get(name) is not None}
        # Within a webhook the order is by event, because ids of deliveries that are written together have no order.
        order = ("-seq",) if "webhook_id" in values else ("-id",)
        rows = in_window(lookup.filter_by(rows, **values), "created_at", options).order_by(*order)
        for row in self.limit_rows(rows, options["limit"]):
            self.print_line(rename_columns(row))

    def show(self, id: str) -> None:
        head = Delivery.objects.filter(pk=id).values(*columns.DELIVERY).first()
        row = Delivery.objects.filter(pk=id).first()
        if head is None or row is None:
            raise CommandError(webhooks.no_delivery(id))
        tries = DeliveryTry.objects.filter(delivery_id=id).order_by("id").values(*columns.DELIVERY_TRY)
        self.print_line(rename_columns(head) | {"body": webhooks.readable_body(row), "log": list(tries)})

    def print_answers(self, name: str, lines: Mapping[str, dict[str, Any]]) -> None:
        """Print a line for each id. Raise CommandError with exit code 1 if any act was refused."""
        for id, line in lines.items():
            self.print_line({name: id} | line)
        if refusals := sum("refused" in line for line in lines.values()):
            raise CommandError(f"{refusals} of {len(lines)} refused.", returncode=1)


def rename_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a delivery or a webhook with the same name for the same id.

    The id of a webhook is `webhook_id` in both. The `name` of a webhook is the id that its owner chose.
    """
    if "url" not in row:
        return row
    safe = row | {"url": site_of(row["url"]), "language": language_of(row["version"], row["language"])}
    safe["events"] = names_of(safe.pop("notices"))
    return {"webhook_id" if name == "id" else name: value for name, value in safe.items()}


def _act(verb: str, operator: Operator, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {id: _format_answer(verb, answer) for id, answer in VERBS[verb].do(list(ids), operator).items()}


def _format_answer(verb: str, answer: Answer) -> dict[str, Any]:
    if answer.refusal:
        return {"refused": answer.refusal}
    return {"done": verb} | ({"note": answer.note} if answer.note else {})


def _read_secret(operator: Operator, id: str) -> dict[str, dict[str, Any]]:
    try:
        return {id: {"secret": webhooks.secret_of(id, operator)}}
    except ActRefused as refusal:
        return {id: {"refused": str(refusal)}}
