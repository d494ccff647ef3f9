"""manage.py deliveries: what an operator can do to webhooks and deliveries in the admin. Prints JSON lines."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.management.base import CommandError
from django.db.models import Model

from tasks_app import webhooks
from tasks_app.management.operator import DatabaseCommand, by, ids_of, takes_examples, takes_limit, takes_operator
from tasks_app.models import Delivery, DeliveryTry, PushConfig
from tasks_app.operators import lookup
from tasks_app.operators.audit import Operator
from tasks_app.sealing import site_of
from tasks_app.webhooks import ActRefused, Answer

HEAD = (
    "id",
    "config_id",
    "task_id",
    "seq",
    "version",
    "state",
    "tries",
    "status",
    "error",
    "created_at",
    "done_at",
)
WEBHOOK = (
    "id",
    "task_id",
    "config_id",
    "version",
    "url",
    "key_id",
    "schemes",
    "state",
    "reason",
    "due_at",
    "created_at",
    "updated_at",
)
TRY = ("number", "at", "status", "error", "duration_ms")


class Act(NamedTuple):
    """An operator's act on rows."""

    model: type[Model]
    do: Callable[[list[str], Operator], Mapping[str, Answer]]
    help: str


ACTS = {
    "retry": Act(Delivery, webhooks.send_again, "try deliveries again, now, each webhook's in the order of events"),
    "give-up": Act(Delivery, webhooks.one_by_one(webhooks.give_up), "no more tries of waiting deliveries"),
    "disable": Act(PushConfig, webhooks.one_by_one(webhooks.disable), "no more tries to webhooks"),
    "enable": Act(PushConfig, webhooks.one_by_one(webhooks.enable), "deliver what happens from now on again"),
}


class Command(DatabaseCommand):
    help = "Webhooks and their deliveries: list, show, retry, give up. Prints JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        takes_examples(
            parser,
            "deliveries list --state dead",
            "deliveries list --state dead --limit 10000 | jq -r .id | manage.py deliveries retry -",
            'deliveries disable WEBHOOK_ID --reason "its receiver is gone"',
        )
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="the newest deliveries")
        listing.add_argument("--state", choices=[state for state, _ in Delivery.STATES])
        listing.add_argument("--task", help="of this task only")
        listing.add_argument("--webhook", metavar="WEBHOOK_ID", help="to this webhook only")
        takes_limit(listing)
        show = verbs.add_parser("show", help="a delivery with its body and its tries")
        show.add_argument("id")
        webhooks = verbs.add_parser("webhooks", help="the newest webhooks, without what is secret")
        webhooks.add_argument("--state", choices=[state for state, _ in PushConfig.STATES])
        webhooks.add_argument("--task", help="of this task only")
        webhooks.add_argument("--host", help="of their address, such as hooks.example.com")
        webhooks.add_argument("--key", type=int, metavar="KEY_ID", help="registered with this key")
        takes_limit(webhooks)
        for verb, act in ACTS.items():
            parser = verbs.add_parser(verb, help=act.help)
            parser.add_argument(
                "ids", nargs="+", metavar="id" if act.model is Delivery else "webhook_id", help="or -: of the input"
            )
            takes_operator(parser)
        secret = verbs.add_parser("secret", help="what the deliveries of a webhook are signed with")
        secret.add_argument("id", metavar="webhook_id")
        takes_operator(secret)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        match verb:
            case "list":
                self.list(Delivery.objects.values(*HEAD), options)
            case "webhooks":
                self.list(PushConfig.objects.values(*WEBHOOK), options)
            case "show":
                self.show(options["id"])
            case "secret":
                self.told("webhook_id", _secret(by(options), options["id"]))
            case _:
                name = "id" if ACTS[verb].model is Delivery else "webhook_id"
                self.told(name, _act(verb, by(options), ids_of(options["ids"])))

    def list(self, rows: Any, options: dict[str, Any]) -> None:
        columns = {"state": "state", "task": "task_id", "webhook": "config_id", "host": "host", "key": "key_id"}
        chosen = {column: options[name] for name, column in columns.items() if options.get(name)}
        # Within a webhook the newest event is first: deliveries that are written together have ids in no order.
        order = ("-seq",) if chosen.keys() >= {"config_id"} else ("-id",)
        for row in self.newest(lookup.filter_by(rows, **chosen).order_by(*order), options["limit"]):
            self.line(named(row))

    def show(self, id: str) -> None:
        found = Delivery.objects.filter(pk=id).values(*HEAD).first()
        row = Delivery.objects.filter(pk=id).first()
        if found is None or row is None:
            raise CommandError(webhooks.no_delivery(id))
        tries = DeliveryTry.objects.filter(delivery_id=id).order_by("id").values(*TRY)
        self.line(named(found) | {"body": webhooks.shown_body(row), "log": list(tries)})

    def told(self, name: str, lines: Mapping[str, dict[str, Any]]) -> None:
        """Print a line for each id. The exit code is 1 if one of them was refused."""
        for id, line in lines.items():
            self.line({name: id} | line)
        if refused := sum("refused" in line for line in lines.values()):
            raise CommandError(f"{refused} of {len(lines)} refused.", returncode=1)


def named(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a delivery or of a webhook; webhook_id is the webhook's own id in both, config_id its owner's."""
    if "url" not in row:
        return {"webhook_id" if name == "config_id" else name: value for name, value in row.items()}
    shown = row | {"url": site_of(row["url"])}
    return {"webhook_id" if name == "id" else name: value for name, value in shown.items()}


def _act(verb: str, operator: Operator, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {id: _line(verb, answer) for id, answer in ACTS[verb].do(list(ids), operator).items()}


def _line(verb: str, answer: Answer) -> dict[str, Any]:
    if answer.refusal:
        return {"refused": answer.refusal}
    return {"done": verb} | ({"note": answer.note} if answer.note else {})


def _secret(operator: Operator, id: str) -> dict[str, dict[str, Any]]:
    try:
        return {id: {"secret": webhooks.secret_of(id, operator)}}
    except ActRefused as refused:
        return {id: {"refused": str(refused)}}
