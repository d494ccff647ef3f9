"""`manage.py a2a purge`: old rows are deleted at once, while servers run, with progress as JSON lines."""

import signal
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

from django.core.management.base import CommandError

from tasks_app import clock
from tasks_app.management.arguments import add_operator, read_operator, read_time
from tasks_app.management.nouns import Noun, Printer
from tasks_app.upkeep import processes
from tasks_app.upkeep.purge import Purge, count
from tasks_app.upkeep.row_kinds import ROW_KINDS, RowKind

CHOICES = {
    "tasks": ("replies", "tasks"),
    "exchanges": ("exchanges", "refusals", "deliveries"),
    "keys": ("message_ids",),
}
"""The kinds of rows that each option stands for. Without any option all kinds are deleted."""
LINE_SECONDS = 5.0
"""Seconds between two lines of progress."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tasks", action="store_true", help="ended tasks with their events, runs, webhooks and files")
    parser.add_argument(
        "--exchanges",
        action="store_true",
        help="recorded calls, counts of refused calls, and deliveries that arrived or were superseded",
    )
    parser.add_argument(
        "--keys",
        action="store_true",
        help="message ids, not API keys; a message that is sent again under a deleted id is performed again",
    )
    parser.add_argument(
        "--before",
        type=read_time,
        metavar="TIME",
        help="delete rows older than a time such as 2026-11-21T03:00 (UTC) or an age such as 15m or 7d; "
        "by default the ages of the settings. The audit is never deleted before A2A_AUDIT_DAYS",
    )
    parser.add_argument("--dry-run", action="store_true", help="count the rows, but delete nothing")
    add_operator(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    before: datetime | None = options["before"]
    now = processes.process_row.read_clock()
    if before is None and not options["dry_run"] and (reasons := processes.clock_doubts()):
        raise CommandError(f"{reasons[0]}. Or use --before TIME to say what is old.")
    if before is not None and before > now:
        raise CommandError(f"--before {before:%Y-%m-%dT%H:%M:%SZ} is in the future: name a time in the past.")
    names = [name for option, kinds in CHOICES.items() if options[option] for name in kinds] or list(ROW_KINDS)
    bounds = {name: _bound_of(ROW_KINDS[name], before) for name in names}
    if options["dry_run"]:
        for name, until in bounds.items():
            printer.print_line({"rows": name, "before": until, "would_delete": count(ROW_KINDS[name], until)})
        return
    purge = Purge(bounds, read_operator(options))
    with _exit_at_sigterm(), purge.recorded():
        for name in names:
            _purge(printer, purge, name)


@contextmanager
def _exit_at_sigterm() -> Iterator[None]:
    """Have SIGTERM raise SystemExit, so that the act is recorded. By default the signal ends a process at once."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _bound_of(kind: RowKind, before: datetime | None) -> datetime:
    """Return the time before which rows of a kind are deleted. `before` is the time that the operator named, if any."""
    end = clock.now() - kind.age()
    return min(before or end, end) if kind.is_record else before or end


def _purge(printer: Printer, purge: Purge, name: str) -> None:
    """Delete the old rows of a kind, and print a line now and then."""
    began = printed = time.monotonic()
    for number in purge.delete(name):
        if time.monotonic() - printed > LINE_SECONDS:
            printed = time.monotonic()
            printer.print_line({"rows": name, "deleted": number, "done": False})
    seconds, number = round(time.monotonic() - began, 3), purge.counts[name]
    until = purge.bounds[name]
    printer.print_line({"rows": name, "before": until, "deleted": number, "seconds": seconds, "done": True})


PURGE = Noun(help="delete old rows now", add_arguments=_add_arguments, handle=_handle)
