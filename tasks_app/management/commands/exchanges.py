"""manage.py exchanges ID: what the admin shows of a call, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import CommandError

from tasks_app import exchanges, lookup
from tasks_app.management.operator import DatabaseCommand
from tasks_app.models import Exchange, ExchangeBody


class Command(DatabaseCommand):
    help = "Print the exchanges with that exchange, request, rpc or task id as JSON lines, newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id")
        parser.add_argument("--bodies", action="store_true", help="with the texts of request and response")

    def handle(self, *args: Any, id: str, bodies: bool, **options: Any) -> None:
        found = False
        for row in lookup.exchanges(id).select_related("caller", "tenant"):
            found = True
            self.stdout.write(orjson.dumps(facts(row) | (texts(row) if bodies else {})).decode())
        if not found:
            raise CommandError(f"No exchange has the id {id!r}, or it is no longer kept.", returncode=1)


def facts(row: Exchange) -> dict[str, Any]:
    """The columns; caller and tenant by name."""
    columns = {field.attname: getattr(row, field.attname) for field in Exchange._meta.concrete_fields}
    columns["caller"] = row.caller.name if row.caller else None
    columns["tenant"] = row.tenant.name if row.tenant else None
    return columns


def texts(row: Exchange) -> dict[str, str]:
    """The bodies as text, to the letter: jq's fromjson opens them."""
    body = ExchangeBody.objects.filter(pk=row.pk).first()
    return {"request": body.request if body else "", "response": exchanges.response_text(row) if row.outcome else ""}
