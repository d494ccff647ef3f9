"""`manage.py a2a workflows`: workflows, with their tasks and results, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a.workflows import WorkflowState
from tasks_app.exchanges.redaction import redact
from tasks_app.management.arguments import add_ids, add_limit, add_operator, add_window, in_window, read_text
from tasks_app.management.nouns import Noun, Printer, act_on_ids, owned_line
from tasks_app.models import Workflow
from tasks_app.operators import columns
from tasks_app.workflows.details import details_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the workflows, newest first")
    listing.add_argument("--state", choices=[state.value for state in WorkflowState], help="only those in a state")
    listing.add_argument("--name", type=read_text, help="only those of this name")
    add_window(listing)
    add_limit(listing)
    show = verbs.add_parser("show", help="show one with its tasks and their results")
    show.add_argument("id", type=read_text)
    cancel = verbs.add_parser("cancel", help="end workflows for good, and cancel their unfinished tasks")
    add_ids(cancel)
    add_operator(cancel)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = Workflow.objects.select_related("owner", "tenant").order_by("-pk")
    match options["verb"]:
        case "list":
            values = {name: options[name] for name in ("state", "name") if options[name] is not None}
            rows = in_window(rows.filter(**values), "created_at", options)
            for row in printer.limit_rows(rows, options["limit"]):
                printer.print_line(owned_line(row, columns.WORKFLOW))
        case "show":
            from tasks_app.webhooks import with_files  # loads the HTTP client

            row = rows.filter(pk=options["id"]).first()
            if row is None:
                raise CommandError(f"There is no workflow {options['id']}.")
            printer.print_line(owned_line(row, columns.WORKFLOW) | details_of(row, redact, with_files))
        case _:
            from tasks_app.operations import workflow_acts  # loads the agents

            act_on_ids(printer, options, workflow_acts.cancel)


WORKFLOWS = Noun(
    help="list workflows, show one, and cancel them",
    add_arguments=_add_arguments,
    handle=_handle,
)
