"""manage.py tasks show|cancel|list: what an operator can do to tasks in the admin, with JSON lines as the answer."""

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import CommandError
from django.db.models import QuerySet

from a2a.errors import Error
from a2a.states import TaskState
from tasks_app import event_log
from tasks_app.cards.addresses import public
from tasks_app.files import with_links
from tasks_app.ids import uuid7_at
from tasks_app.management.operator import (
    DatabaseCommand,
    by,
    ids_of,
    limit_of,
    takes_examples,
    takes_limit,
    takes_operator,
    takes_since,
)
from tasks_app.models import Event, Run, Task
from tasks_app.operators import lookup
from tasks_app.operators.audit import Operator

HEAD = (
    "id",
    "tenant__name",
    "owner__name",
    "context_id",
    "agent",
    "state",
    "status_at",
    "last_seq",
    "queue",
    "priority",
    "attempt",
    "tries",
    "max_attempts",
    "not_before",
    "timeout",
    "lease_owner",
    "lease_until",
    "deadline",
    "created_at",
)


class Command(DatabaseCommand):
    help = "Show, cancel and list tasks. Prints JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        takes_examples(
            parser,
            "tasks list --state failed --since 1h",
            "tasks show adc271c580b2      the reference that the caller of a failure was told",
            'tasks cancel ID ID --reason "the order was withdrawn"',
        )
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("show", help="everything about a task, or about the tasks of a context")
        show.add_argument(
            "id", help="of a task or of a context, or the reference that the caller of a failure was told"
        )
        show.add_argument("--limit", type=limit_of, help=f"tasks; {lookup.CANDIDATES} if left out")
        cancel = verbs.add_parser("cancel", help="cancel tasks")
        cancel.add_argument("ids", nargs="+", metavar="id", help="or -: of the input")
        takes_operator(cancel)
        listing = verbs.add_parser("list", help="the newest tasks")
        listing.add_argument("--state", choices=[state.value for state in TaskState])
        listing.add_argument("--agent")
        listing.add_argument("--reference", help="what the caller of a failure was told")
        takes_since(listing)
        takes_limit(listing)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        match verb:
            case "show":
                self.show(options["id"], options["limit"])
            case "cancel":
                self.cancel(ids_of(options["ids"]), by(options))
            case _:
                self.list(options)

    def show(self, id: str, limit: int | None) -> None:
        most = limit or lookup.CANDIDATES
        found = list(lookup.find_tasks(id, most=most + 1).values_list("pk", flat=True)[: most + 1])
        for task_id in found[:most]:
            # A stored reference to a file is a secret; a link to it is not for ever.
            self.stdout.write(with_links(orjson.dumps(whole(task_id)), public()).decode())
        if not found:
            raise CommandError(f"No task and no context has the id {id!r}, and no failure the reference.", returncode=1)
        self.cut(len(found), most, limit)

    def cancel(self, ids: list[str], operator: Operator) -> None:
        """Every id is tried; the exit code is 1 if one of them was not canceled."""
        from tasks_app import operations  # what they load takes longer than a list

        refused = 0
        for task_id in ids:
            try:
                operations.cancel_for_operator(task_id, operator)
            except Error as error:
                refused += 1
                self.line({"id": task_id, "canceled": False, "reason": error.reason, "message": error.sentence})
            else:
                self.line({"id": task_id, "canceled": True})
        if refused:
            raise CommandError(f"{refused} of {len(ids)} not canceled.", returncode=1)

    def list(self, options: dict[str, Any]) -> None:
        rows = (
            Task.objects.all() if options["reference"] is None else lookup.find_tasks_by_reference(options["reference"])
        )
        chosen = {name: options[name] for name in ("state", "agent") if options[name]}
        rows = lookup.filter_by(rows, **chosen).order_by("-id")
        if since := options["since"]:
            # By id: it begins with the time, and the list is in its order.
            rows = rows.filter(pk__gte=uuid7_at(since))
        for row in self.newest(heads(rows), options["limit"]):
            self.line(named(row))


def heads(rows: QuerySet[Task]) -> Any:
    return rows.values(*HEAD)


def named(row: dict[str, Any]) -> dict[str, Any]:
    """The head columns, tenant and owner by name."""
    return {name.removesuffix("__name"): value for name, value in row.items()}


def whole(task_id: str) -> dict[str, Any]:
    """The head, the task as callers see it, its log and its runs."""
    read = event_log.read_many([event_log.ReadTask(task_id=task_id, sight=None)])[0]
    events = Event.objects.filter(task_id=task_id).order_by("seq")
    columns = ("seq", "attempt", "kind", "state", "actor", "exchange_id", "created_at", "payload")
    runs = Run.objects.filter(task_id=task_id).order_by("id")
    return {
        **named(heads(Task.objects.filter(pk=task_id)).get()),
        "task": orjson.Fragment(read.document.json()) if read else None,
        "events": [row | {"payload": orjson.Fragment(row["payload"])} for row in events.values(*columns)],
        "runs": list(runs.values("number", "worker", "started_at", "ended_at", "outcome", "reference", "traceback")),
    }
