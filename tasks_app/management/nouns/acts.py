"""`manage.py a2a acts`: what operators did, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

import orjson

from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import takes_limit, takes_since
from tasks_app.models.acts import Act

COLUMNS = ("id", "at", "operator", "door", "verb", "kind", "object_id", "name", "before", "after", "reason")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--operator", help="of this person only")
    parser.add_argument("--verb", help='such as cancel or "send again"')
    parser.add_argument("--kind", help="task, delivery, webhook, API key, user")
    parser.add_argument("--id", dest="object_id", help="on this row only")
    takes_since(parser)
    takes_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    rows = Act.objects.order_by("-id").values(*COLUMNS)
    chosen = {name: options[name] for name in ("operator", "verb", "kind", "object_id") if options[name]}
    if since := options["since"]:
        chosen["at__gte"] = since
    for row in printer.newest(rows.filter(**chosen), options["limit"]):
        printer.line(row | {name: orjson.Fragment(row[name]) for name in ("before", "after")})


ACTS = Noun(help="what operators did", add_arguments=_add_arguments, handle=_handle)
