"""`manage.py a2a purge`: delete old rows now, on a live system, as JSON lines."""

import logging
import time
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from tasks_app import clock
from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import takes_operator, time_of
from tasks_app.upkeep import processes
from tasks_app.upkeep.purge import count, purge
from tasks_app.upkeep.row_kinds import ROW_KINDS, RowKind

log = logging.getLogger(__name__)
CHOICES = {"tasks": ("turns", "tasks"), "exchanges": ("exchanges", "deliveries"), "keys": ("keys",)}
"""Heaps that an option chooses; without any, all of them are gone through."""
LINE_SECONDS = 5.0
"""Seconds between two lines about one kind of row."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tasks", action="store_true", help="ended tasks with their events, runs, webhooks and files")
    parser.add_argument("--exchanges", action="store_true", help="recorded calls, and deliveries that arrived")
    parser.add_argument("--keys", action="store_true", help="message ids: the same message again is done again")
    parser.add_argument(
        "--before", type=time_of, metavar="TIME", help="2026-11-21T03:00 (UTC), or an age: 15m, 7d; else by settings"
    )
    parser.add_argument("--dry-run", action="store_true", help="count, and delete nothing")
    takes_operator(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    before: datetime | None = options["before"]
    now = processes.process_row.read_clock()
    if before is None and not options["dry_run"] and (reasons := processes.clock_doubts()):
        raise CommandError(f"{reasons[0]}. Or say with --before what is old.")
    if before is not None and before > now:
        raise CommandError("--before is still to come: rows of the future cannot be old.")
    chosen = [name for option, names in CHOICES.items() if options[option] for name in names] or list(ROW_KINDS)
    for name in chosen:
        kind = ROW_KINDS[name]
        until = before or clock.now() - kind.age()
        if options["dry_run"]:
            printer.line({"rows": name, "before": until, "would_delete": count(kind, until)})
            continue
        deleted = _purge(printer, kind, until)
        log.info("%s deleted %d %s from before %s", options["operator"], deleted, name, until)


def _purge(printer: Printer, kind: RowKind, before: datetime) -> int:
    began = shown = time.monotonic()
    deleted = 0
    for rows in purge(kind, before):
        deleted += rows
        if time.monotonic() - shown > LINE_SECONDS:
            shown = time.monotonic()
            printer.line({"rows": kind.name, "deleted": deleted, "done": False})
    seconds = round(time.monotonic() - began, 3)
    printer.line({"rows": kind.name, "before": before, "deleted": deleted, "seconds": seconds, "done": True})
    return deleted


PURGE = Noun(help="delete old rows now", add_arguments=_add_arguments, handle=_handle)
