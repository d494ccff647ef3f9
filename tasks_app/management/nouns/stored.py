"""`manage.py a2a stored`: the bytes that owners have stored, next to the quota, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from tasks_app.management.arguments import add_limit
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Principal
from tasks_app.operators.stored import amounts_of, list_owners


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="only owners at the quota")
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    lines = [(owner_id, amounts_of(kinds)) for owner_id, kinds in list_owners()]
    full = sum(amounts["is_full"] for _, amounts in lines)
    total = sum(amounts["bytes"] for _, amounts in lines)
    printer.print_line({"owner": None, "bytes": total, "full": full, "most": settings.A2A_OWNER_STORED_BYTES})
    rows = [line for line in lines if line[1]["is_full"] or not options["full"]][: options["limit"]]
    owners = Principal.objects.select_related("tenant").in_bulk([owner_id for owner_id, _ in rows])
    for owner_id, amounts in rows:
        owner = owners.get(owner_id)
        names = {"tenant": owner.tenant.name, "owner": owner.name} if owner else {"tenant": None, "owner": owner_id}
        printer.print_line(names | amounts)


STORED = Noun(
    help="sum the stored bytes of owners, the most first, next to the quota",
    add_arguments=_add_arguments,
    handle=_handle,
)
