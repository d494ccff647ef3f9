"""`manage.py a2a processes`: the processes of this platform, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

import orjson

from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import by, takes_limit, takes_operator
from tasks_app.models import Process
from tasks_app.operators.audit import Change, record_acts
from tasks_app.upkeep import processes

COLUMNS = (
    "name",
    "role",
    "version",
    "started_at",
    "seen_at",
    "ended_at",
    "steady_at",
    "clock_off",
    "troubles",
    "lost",
    "lag",
)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--clock-is-right", action="store_true", help="confirm this machine's clock, so that deleting goes on"
    )
    takes_operator(parser)
    takes_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["clock_is_right"]:
        row = processes.confirm_clock(options["operator"])
        record_acts(by(options), "confirm clock", Change(row))
    for found in printer.newest(Process.objects.order_by("-seen_at").values(*COLUMNS), options["limit"]):
        printer.line(found | {"troubles": orjson.loads(found["troubles"])})


PROCESSES = Noun(
    help="the processes that run or ran today, with their clocks and troubles",
    add_arguments=_add_arguments,
    handle=_handle,
)
