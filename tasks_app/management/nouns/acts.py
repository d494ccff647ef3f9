"""`manage.py a2a acts`: the acts of operators, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import CommandError
from django.db.models import F

from tasks_app.management.arguments import add_limit, add_window, in_window, read_text
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models.acts import Act
from tasks_app.operators.audit import check_kind, check_verb
from tasks_app.operators.refusals import sentence_of

COLUMNS = (
    *("id", "at", "operator", "door", "verb", "kind", "object_id", "name", "before", "after", "reason"),
    *("peer", "trace"),
)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--operator", type=read_text, help="only acts of this operator")
    parser.add_argument("--verb", type=read_text, help='only acts of this kind, such as cancel or "send again"')
    parser.add_argument(
        "--kind", type=read_text, help="only acts on rows of this kind: task, delivery, webhook, API key or user"
    )
    parser.add_argument("--id", type=read_text, dest="object_id", help="only acts on the row with this id")
    add_window(parser)
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = in_window(Act.objects.order_by("-id"), "at", options).values(*COLUMNS, tenant_name=F("tenant__name"))
    values = {name: options[name] for name in ("operator", "verb", "kind", "object_id") if options[name] is not None}
    try:
        for name, check in (("kind", check_kind), ("verb", check_verb)):
            if name in values:
                check(values[name])
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    for row in printer.limit_rows(rows.filter(**values), options["limit"]):
        row["tenant"] = row.pop("tenant_name")  # A query cannot name a value like a column of its table.
        printer.print_line(row | {name: orjson.Fragment(row[name]) for name in ("before", "after")})


ACTS = Noun(help="list the acts of operators, newest first", add_arguments=_add_arguments, handle=_handle)
