"""manage.py deliveries: what an operator can do to webhooks and deliveries in the admin. Prints JSON lines."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from django.core.management.base import CommandError
from django.db.models import Model

from tasks_app import deliveries
from tasks_app.deliveries import ActRefused, Answer
from tasks_app.management.operator import DatabaseCommand, takes_limit, takes_operator, write_down
from tasks_app.models import Delivery, DeliveryTry, PushConfig

HEAD = (
    "id", "config_id", "task_id", "seq", "version", "state", "tries", "status", "error", "created_at", "done_at",
)  # fmt: skip
WEBHOOK = (
    "id", "task_id", "config_id", "version", "url", "schemes", "state", "reason", "due_at", "created_at", "updated_at",
)  # fmt: skip
TRY = ("number", "at", "status", "error", "duration_ms")


class Act(NamedTuple):
    """An operator's act on a row, and its sentence for the log of the admin, which is the admin's own."""

    model: type[Model]
    do: Callable[[list[str], str], Mapping[str, Answer]]
    done: str
    help: str


ACTS = {
    "retry": Act(
        Delivery, lambda ids, _: deliveries.send_again(ids), "To be sent again",
        "try deliveries again, now, those of a webhook in the order of their events",
    ),
    "give-up": Act(
        Delivery, lambda ids, _: deliveries.each(deliveries.give_up, ids), "Given up",
        "no more tries of waiting deliveries",
    ),
    "disable": Act(
        PushConfig, lambda ids, name: deliveries.each(lambda id: deliveries.disable(id, name), ids), "Disabled",
        "no more tries to webhooks",
    ),
    "enable": Act(
        PushConfig, lambda ids, _: deliveries.each(deliveries.enable, ids), "Enabled",
        "deliver what happens from now on again",
    ),
}  # fmt: skip


class Command(DatabaseCommand):
    help = "Webhooks and their deliveries: list, show, retry, give up. Prints JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
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
        takes_limit(webhooks)
        for verb, act in ACTS.items():
            parser = verbs.add_parser(verb, help=act.help)
            parser.add_argument("ids", nargs="+", metavar="id" if act.model is Delivery else "webhook_id")
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
                self.told("webhook_id", _secret(options["operator"], options["id"]))
            case _:
                name = "id" if ACTS[verb].model is Delivery else "webhook_id"
                self.told(name, _act(verb, options["operator"], options["ids"]))

    def list(self, rows: Any, options: dict[str, Any]) -> None:
        columns = {"state": "state", "task": "task_id", "webhook": "config_id"}
        chosen = {column: options[name] for name, column in columns.items() if options.get(name)}
        if "state" in chosen and rows.model is Delivery and chosen["state"] != "delivered":
            # SQLite uses a partial index only where the statement repeats its condition.
            rows = rows.exclude(state="delivered")
        # Within a webhook the newest event is first: deliveries that are written together have ids in no order.
        order = ("-seq",) if chosen.keys() >= {"config_id"} else ("-id",)
        for row in self.newest(rows.filter(**chosen).order_by(*order), options["limit"]):
            self.line(named(row))

    def show(self, id: str) -> None:
        found = Delivery.objects.filter(pk=id).values(*HEAD).first()
        row = Delivery.objects.filter(pk=id).first()
        if found is None or row is None:
            raise CommandError(deliveries.no_delivery(id))
        tries = DeliveryTry.objects.filter(delivery_id=id).order_by("id").values(*TRY)
        self.line(named(found) | {"body": deliveries.shown_body(row), "log": list(tries)})

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
    shown = row | {"url": deliveries.shown_address(row["url"])}
    return {"webhook_id" if name == "id" else name: value for name, value in shown.items()}


def _act(verb: str, operator: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    act = ACTS[verb]
    answers = act.do(list(ids), operator)
    for row in act.model._default_manager.filter(pk__in=[id for id, answer in answers.items() if not answer.refusal]):
        write_down(operator, row, act.done)
    return {id: _line(verb, answer) for id, answer in answers.items()}


def _line(verb: str, answer: Answer) -> dict[str, Any]:
    if answer.refusal:
        return {"refused": answer.refusal}
    return {"done": verb} | ({"note": answer.note} if answer.note else {})


def _secret(operator: str, id: str) -> dict[str, dict[str, Any]]:
    try:
        secret = deliveries.secret_of(id)
    except ActRefused as refused:
        return {id: {"refused": str(refused)}}
    write_down(operator, PushConfig.objects.get(pk=id), "Secret shown")
    return {id: {"secret": secret}}
