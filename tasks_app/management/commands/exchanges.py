"""manage.py exchanges: the admin's list and search of exchanges, with JSON lines as output."""

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.management.base import CommandError
from django.db.models import QuerySet

from a2a import languages
from tasks_app.exchanges import responses
from tasks_app.management.arguments import (
    add_examples,
    add_window,
    check_window,
    make_number_reader,
    read_limit,
    read_text,
)
from tasks_app.management.database_command import DEFAULT_LINES, DatabaseCommand
from tasks_app.models import Exchange, ExchangeBody
from tasks_app.operators import lookup
from tasks_app.operators.damage import BROKEN

COLUMNS = {
    "outcome": "outcome",
    "method": "method",
    "status": "http_status",
    "door": "door",
    "dialect": "dialect",
    "peer": "peer",
}
"""The column that each option of the list filters by."""
PAGE = 500
"""Exchanges whose tasks are read in one statement."""


class Command(DatabaseCommand):
    help = "Print exchanges as JSON lines, newest first: a list, or all exchanges with an id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "id",
            type=read_text,
            metavar="list|ID",
            help='"list" for the newest; or the id of an exchange, request, RPC or task, or the reference in an error',
        )
        add_examples(
            parser,
            "exchanges list --outcome error --since 15m",
            "exchanges req-7781 --bodies | jq '.response | fromjson'",
            "exchanges adc271c580b2      the reference in the error message of a failure",
        )
        parser.add_argument("--bodies", action="store_true", help="include the texts of request and response")
        filters = parser.add_argument_group("filters of the list")
        filters.add_argument(
            "--outcome",
            choices=(*Exchange.OUTCOMES, lookup.NONE),
            help="only with this outcome; none: no answer recorded",
        )
        filters.add_argument("--method", type=read_text, help="only of this method, by its JSON-RPC name even for REST")
        filters.add_argument(
            "--status",
            type=make_number_reader(100, 599),
            metavar="HTTP",
            help="only with this HTTP status, such as 401",
        )
        filters.add_argument("--door", choices=Exchange.DOORS, help="only through this door")
        filters.add_argument(
            "--dialect",
            choices=(*sorted(languages.ALL.by_name), lookup.NONE),
            help="only in this dialect; none: refused before it was read",
        )
        filters.add_argument("--caller", type=read_text, help="only from a principal, such as olga or acme/olga")
        filters.add_argument(
            "--peer", type=read_text, metavar="ADDRESS", help="only from this network address, such as 192.0.2.7"
        )
        add_window(filters)
        parser.add_argument(
            "--limit",
            type=read_limit,
            help=f"the most lines to print; by default {DEFAULT_LINES} for the list, {lookup.CANDIDATES} for an id",
        )

    def handle(self, *args: Any, id: str, bodies: bool, limit: int | None, **options: Any) -> None:
        filters = {name: options[name] for name in (*COLUMNS, "caller", "since", "until") if options[name] is not None}
        if id == "list":
            check_window(options)
            rows = select_related(filter_exchanges(**filters))
            self.print_exchanges(self.limit_rows(rows, limit or DEFAULT_LINES), bodies=bodies)
        elif filters:
            raise CommandError(f"--{next(iter(filters))} is for `exchanges list`, not for an id.", returncode=2)
        else:
            self.find(id, limit, bodies=bodies)

    def find(self, id: str, limit: int | None, *, bodies: bool) -> None:
        most = limit or lookup.CANDIDATES
        rows = list(select_related(lookup.find_exchanges(id, most=most + 1)))
        if not rows:
            raise CommandError(
                f"There is no exchange with the id or reference {id!r}, or it was deleted because of its age.",
                returncode=1,
            )
        self.print_exchanges(iter(rows[:most]), bodies=bodies)
        self.report_more(len(rows), most, limit)

    def print_exchanges(self, rows: Iterator[Exchange], *, bodies: bool) -> None:
        while page := list(islice(rows, PAGE)):
            states = lookup.read_states(row.task_id for row in page)
            for row in page:
                state = {"task_state": states.get(row.task_id or "")}
                self.print_line(read_columns(row) | state | (read_bodies(row) if bodies else {}))


def select_related(rows: QuerySet[Exchange]) -> QuerySet[Exchange]:
    return rows.select_related("caller", "tenant")


def filter_exchanges(
    *, since: datetime | None = None, until: datetime | None = None, caller: str | None = None, **values: Any
) -> QuerySet[Exchange]:
    """Return the exchanges with these values, newest first."""
    rows = Exchange.objects.all() if caller is None else lookup.owned_by(Exchange.objects.all(), caller, "caller_id")
    rows = lookup.filter_by(rows, **{COLUMNS[name]: value for name, value in lookup.read_none(values).items()})
    return lookup.in_window(rows, "created_at", since, until).order_by("-id")


def read_columns(row: Exchange) -> dict[str, Any]:
    """Return all columns, with the names of caller and tenant."""
    columns = {field.attname: getattr(row, field.attname) for field in Exchange._meta.concrete_fields}
    columns["caller"] = row.caller.name if row.caller else None
    columns["tenant"] = row.tenant.name if row.tenant else None
    return columns


def read_bodies(row: Exchange) -> dict[str, str]:
    """Return request and response as recorded, each as one text. jq's `fromjson` parses it.

    The response is empty if it is in a log that is damaged.
    """
    from tasks_app.webhooks import with_files  # loads the HTTP client

    body = ExchangeBody.objects.filter(pk=row.pk).first()
    try:
        response = with_files(responses.response_text(row)) if row.outcome else ""
    except BROKEN:
        response = ""
    return {"request": body.request if body else "", "response": response}
