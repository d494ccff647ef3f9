"""manage.py tasks: the admin's list, search and canceling of tasks, and links to their streams, with JSON lines as
output."""

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import CommandError

from a2a.errors import Error
from a2a.money import show_usd
from a2a.states import TaskState
from a2a.terminals import safe_json
from tasks_app import event_log
from tasks_app.callers.stream_links import make_link
from tasks_app.cards.addresses import public
from tasks_app.files import with_links
from tasks_app.management.arguments import (
    add_examples,
    add_ids,
    add_limit,
    add_operator,
    add_window,
    in_window,
    read_ids,
    read_limit,
    read_operator,
    read_text,
)
from tasks_app.management.database_command import DatabaseCommand
from tasks_app.models import Event, RelayedTask, Run, Task
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.damage import BROKEN
from tasks_app.operators.refusals import reason_of

HEAD = ("id", "tenant__name", "owner__name", *columns.TASK)


class Command(DatabaseCommand):
    help = "List, show and cancel tasks, and make links to their streams."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "tasks list --state failed --since 1h",
            "tasks show adc271c580b2      the reference in the error message of a failure",
            'tasks cancel ID ID --reason "the order was withdrawn"',
            "tasks link ID --seconds 600      for a person who should see it work",
        )
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("show", help="show everything about a task, or about the tasks of a context")
        show.add_argument(
            "id", type=read_text, help="the id of a task or a context, or the reference in the error of a failure"
        )
        show.add_argument("--limit", type=read_limit, help=f"the most tasks to print; {lookup.CANDIDATES} by default")
        cancel = verbs.add_parser("cancel", help="cancel tasks")
        add_ids(cancel)
        add_operator(cancel)
        link = verbs.add_parser("link", help="make a link by which anyone can follow a task in a browser, for a time")
        link.add_argument("id", type=read_text, help="the id of the task")
        link.add_argument(
            "--seconds", type=read_text, help="the time until it expires; A2A_LINK_SECONDS by default and at most"
        )
        link.add_argument("--a2a-version", type=read_text, help="the A2A version of the events; the newest by default")
        add_operator(link)
        listing = verbs.add_parser("list", help="list the newest tasks")
        listing.add_argument("--state", choices=[state.value for state in TaskState], help="only in this state")
        listing.add_argument("--agent", type=read_text, help="only of this agent")
        listing.add_argument("--owner", type=read_text, help="only those of a principal, such as olga or acme/olga")
        listing.add_argument(
            "--reference", type=read_text, help="only with this reference in the error message of a failure"
        )
        add_window(listing)
        add_limit(listing)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        match verb:
            case "show":
                self.show(options["id"], options["limit"])
            case "cancel":
                self.cancel(read_ids(options["ids"]), read_operator(options))
            case "link":
                self.link(options["id"], options["seconds"], options["a2a_version"], read_operator(options))
            case _:
                self.list(options)

    def show(self, id: str, limit: int | None) -> None:
        most = limit or lookup.CANDIDATES
        ids = list(lookup.find_tasks(id, most=most + 1).values_list("pk", flat=True)[: most + 1])
        for task_id in ids[:most]:
            # The stored reference to a file is a secret. The output has links instead, which expire.
            self.stdout.write(safe_json(with_links(orjson.dumps(read_task(task_id)), public()).decode()))
        if not ids:
            raise CommandError(
                f"There is no task with the id, context id or reference {id!r}, or it was deleted because of its age.",
                returncode=1,
            )
        self.report_more(len(ids), most, limit)

    def cancel(self, ids: list[str], operator: Operator) -> None:
        """Cancel all tasks that can be canceled. Raise CommandError with exit code 1 if any cannot."""
        from tasks_app import operations  # importing them takes longer than printing a list

        refusals = 0
        for task_id in ids:
            try:
                operations.cancel_for_operator(task_id, operator)
            except Error as error:
                refusals += 1
                sentence = reason_of(error)
                self.print_line({"id": task_id, "canceled": False, "reason": error.reason, "message": sentence})
            else:
                self.print_line({"id": task_id, "canceled": True})
        if refusals:
            raise CommandError(f"{refusals} of {len(ids)} not canceled.", returncode=1)

    def link(self, task_id: str, seconds: str | None, version: str | None, operator: Operator) -> None:
        """Make a link to the stream of a task. It expires, and no key ends it before."""
        task = Task.objects.filter(pk=task_id).first()
        if task is None:
            raise CommandError(f"There is no task {task_id!r}, or it was deleted because of its age.", returncode=1)
        try:
            link = make_link(task.pk, task.owner_id, None, seconds, version)
        except Error as error:
            facts = "; ".join(error.facts.values())
            raise CommandError(f"{error.message}: {facts}" if facts else error.message, returncode=1) from None
        # The record comes first, so that every link is in the record.
        record_acts(operator, "link", Change(task, after={"expiresAt": link.expires_at}))
        self.print_line({"id": task.pk} | link.describe(public()))

    def list(self, options: dict[str, Any]) -> None:
        rows = (
            Task.objects.all() if options["reference"] is None else lookup.find_tasks_by_reference(options["reference"])
        )
        rows = in_window(rows, "created_at", options)
        if options["owner"] is not None:
            rows = lookup.owned_by(rows, options["owner"])
        values = {name: options[name] for name in ("state", "agent") if options[name] is not None}
        rows = lookup.filter_by(rows, **values).order_by("-id")
        for row in self.limit_rows(rows.values(*HEAD), options["limit"]):
            self.print_line(describe_head(row))


def describe_head(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with `tenant` and `owner` for their names, and with money in dollars."""
    money = {name: show_usd(row[name]) for name in columns.MONEY if row[name] is not None}
    return {name.removesuffix("__name"): value for name, value in (row | money).items()}


def read_payload(text: str) -> Any:
    """Return the payload of an event as it is stored, or a string of its text if it is damaged."""
    try:
        orjson.loads(text)
    except ValueError:
        return text
    return orjson.Fragment(text)


def read_task(task_id: str) -> dict[str, Any]:
    """Return the columns of a task, the task as callers see it, its events and its runs.

    The task is None if its log is damaged, which the doctor says in words.
    """
    try:
        stored = event_log.read_many([event_log.ReadTask(task_id=task_id, sight=None)])[0]
    except BROKEN:
        stored = None
    events = Event.objects.filter(task_id=task_id).order_by("seq")
    runs = Run.objects.filter(task_id=task_id).order_by("id")
    return {
        **describe_head(Task.objects.filter(pk=task_id).values(*HEAD).get()),
        "task": orjson.Fragment(bytes(stored.document.json())) if stored else None,
        "events": [row | {"payload": read_payload(row["payload"])} for row in events.values(*columns.EVENT)],
        "relayed": RelayedTask.objects.filter(pk=task_id).values(*columns.RELAYED).first(),
        "runs": list(runs.values(*columns.RUN)),
    }
