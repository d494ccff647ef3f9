"""`manage.py a2a doctor`: say what is wrong with a live system, and what to do about it."""

import sys
from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import CommandError

from tasks_app.doctor import Examination, Finding, examine
from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import within

TASKS = 1_000
"""Tasks whose logs are folded when nothing else is asked for."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="a line of JSON for each finding, and one for the end")
    parser.add_argument(
        "--tasks",
        type=within(0, 999_999_999),
        default=TASKS,
        metavar="N",
        help=f"fold the logs of the newest N tasks; {TASKS:,} if left out",
    )
    parser.add_argument("--all", action="store_true", help="fold the logs of all tasks")


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    """Raises CommandError with the exit code 1 when there is a finding."""
    as_json, examination = options["json"], Examination()

    def progress(so_far: Examination) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{so_far.tasks:,} logs folded, {so_far.findings:,} findings ")

    for finding in examine(None if options["all"] else options["tasks"], examination, progress):
        if as_json:
            printer.line(msgspec.to_builtins(finding))
        else:
            printer.stdout.write(_text(finding))
    if as_json:
        printer.line({"tasks": examination.tasks, "findings": examination.findings})
    folded = f"{_counted(examination.tasks, 'log')} folded"
    if examination.findings:
        raise CommandError(f"{_counted(examination.findings, 'finding')}; {folded}.", returncode=1)
    if not as_json:
        printer.stdout.write(f"Nothing is wrong; {folded}.")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _text(finding: Finding) -> str:
    return f"{finding.kind}: {finding.problem}\n    {finding.remedy}"


DOCTOR = Noun(
    help="examine logs, leases, webhooks and processes; exit code 1 when something is wrong",
    add_arguments=_add_arguments,
    handle=_handle,
)
