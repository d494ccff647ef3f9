"""manage.py exchanges ID, exchanges list: what the admin shows of calls, as JSON lines."""

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.management.base import CommandError
from django.db.models import QuerySet

from tasks_app.exchanges import responses
from tasks_app.ids import uuid7_at
from tasks_app.management.operator import LINES, DatabaseCommand, limit_of, takes_examples, takes_since, within
from tasks_app.models import Exchange, ExchangeBody
from tasks_app.operators import lookup

COLUMNS = {
    "outcome": "outcome",
    "method": "method",
    "status": "http_status",
    "door": "door",
    "dialect": "dialect",
    "caller": "caller__name",
    "peer": "peer",
}
"""Columns that choose among the newest."""
SILENT = "none"
"""Stands for the outcome of a call without a recorded answer."""


class Command(DatabaseCommand):
    help = "Print exchanges as JSON lines, newest first: the newest, or those with an id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "id",
            metavar="list|ID",
            help="the newest; or of this exchange, request, rpc or task id, or a reference that a caller was told",
        )
        takes_examples(
            parser,
            "exchanges list --outcome error --since 15m",
            "exchanges req-7781 --bodies | jq '.response | fromjson'",
            "exchanges adc271c580b2      the reference that the caller of a failure was told",
        )
        parser.add_argument("--bodies", action="store_true", help="with the texts of request and response")
        of_list = parser.add_argument_group("of the list")
        of_list.add_argument("--outcome", choices=(*Exchange.OUTCOMES, SILENT))
        of_list.add_argument("--method", help="by its JSON-RPC name, over REST too")
        of_list.add_argument("--status", type=within(100, 599), metavar="HTTP", help="such as 401")
        of_list.add_argument("--door", help="http, rest")
        of_list.add_argument("--dialect", help="such as a2a-0.3")
        of_list.add_argument("--caller", help="the name of a principal")
        of_list.add_argument("--peer", metavar="ADDRESS", help="that calls came from, such as 192.0.2.7")
        takes_since(of_list)
        parser.add_argument(
            "--limit", type=limit_of, help=f"lines; if left out {LINES} of the list, {lookup.CANDIDATES} of an id"
        )

    def handle(self, *args: Any, id: str, bodies: bool, limit: int | None, **options: Any) -> None:
        chosen = {name: options[name] for name in (*COLUMNS, "since") if options[name] is not None}
        if id == "list":
            self.lines(self.newest(related(listed(**chosen)), limit or LINES), bodies=bodies)
        elif chosen:
            raise CommandError(f"--{next(iter(chosen))} is for `exchanges list`, not for an id.", returncode=2)
        else:
            self.find(id, limit, bodies=bodies)

    def find(self, id: str, limit: int | None, *, bodies: bool) -> None:
        most = limit or lookup.CANDIDATES
        found = list(related(lookup.find_exchanges(id, most=most + 1)))
        if not found:
            raise CommandError(
                f"No exchange has the id {id!r}, and no failure the reference; or it is no longer kept.", returncode=1
            )
        self.lines(iter(found[:most]), bodies=bodies)
        self.cut(len(found), most, limit)

    def lines(self, rows: Iterator[Exchange], *, bodies: bool) -> None:
        for page in pages(rows):
            states = lookup.read_states(row.task_id for row in page)
            for row in page:
                state = {"task_state": states.get(row.task_id or "")}
                self.line(facts(row) | state | (texts(row) if bodies else {}))


PAGE = 500
"""Exchanges whose tasks are read in one statement."""


def pages(rows: Iterator[Exchange]) -> Iterator[list[Exchange]]:
    while page := list(islice(rows, PAGE)):
        yield page


def related(rows: QuerySet[Exchange]) -> QuerySet[Exchange]:
    return rows.select_related("caller", "tenant")


def listed(*, since: datetime | None = None, **values: Any) -> QuerySet[Exchange]:
    """The newest with these values."""
    rows = Exchange.objects.all()
    if values.get("outcome") == SILENT:
        values["outcome"] = ""
    rows = lookup.filter_by(rows, **{COLUMNS[name]: value for name, value in values.items()})
    # By id: it begins with the time, and there is no index on the time itself.
    return (rows.filter(pk__gte=uuid7_at(since)) if since else rows).order_by("-id")


def facts(row: Exchange) -> dict[str, Any]:
    """The columns; caller and tenant by name."""
    columns = {field.attname: getattr(row, field.attname) for field in Exchange._meta.concrete_fields}
    columns["caller"] = row.caller.name if row.caller else None
    columns["tenant"] = row.tenant.name if row.tenant else None
    return columns


def texts(row: Exchange) -> dict[str, str]:
    """The bodies as text, to the letter: jq's fromjson opens them."""
    body = ExchangeBody.objects.filter(pk=row.pk).first()
    return {"request": body.request if body else "", "response": responses.response_text(row) if row.outcome else ""}
