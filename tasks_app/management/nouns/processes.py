"""`manage.py a2a processes`: the servers and workers, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

import orjson

from tasks_app.management.arguments import add_limit, add_operator, read_operator
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Process
from tasks_app.operators import columns
from tasks_app.upkeep import processes


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--clock-is-right",
        action="store_true",
        help="confirm that this machine's clock is right, so that old rows are deleted again",
    )
    add_operator(parser)
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["clock_is_right"]:
        processes.confirm_clock(read_operator(options))
    for row in printer.limit_rows(Process.objects.order_by("-seen_at").values(*columns.PROCESS), options["limit"]):
        printer.print_line(row | {"troubles": orjson.loads(row["troubles"])})


PROCESSES = Noun(
    help="list the processes that run or ran today, with their clocks and troubles",
    add_arguments=_add_arguments,
    handle=_handle,
)
