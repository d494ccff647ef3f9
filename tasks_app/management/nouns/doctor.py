"""`manage.py a2a doctor`: what is wrong with a running system, and what to do about it."""

import sys
from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import CommandError

from a2a.terminals import safe_text
from tasks_app.doctor import Examination, Finding, examine
from tasks_app.management.arguments import make_number_reader
from tasks_app.management.nouns import Noun, Printer

TASKS = 1_000
"""Tasks that are checked without --tasks or --all."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print a line of JSON for each finding, and one for the end"
    )
    parser.add_argument(
        "--tasks",
        type=make_number_reader(0, 999_999_999),
        default=TASKS,
        metavar="N",
        help=f"check the logs of the newest N tasks; {TASKS:,} by default",
    )
    parser.add_argument("--all", action="store_true", help="check the logs of all tasks")


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    """Print all findings. Raise CommandError with exit code 1 if there are any."""
    as_json, examination = options["json"], Examination()

    def progress(so_far: Examination) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{so_far.tasks:,} logs checked, {so_far.findings:,} findings ")

    for finding in examine(None if options["all"] else options["tasks"], examination, progress):
        if as_json:
            printer.print_line(msgspec.to_builtins(finding))
        else:
            printer.stdout.write(safe_text(_format(finding)))
    if as_json:
        printer.print_line({"tasks": examination.tasks, "findings": examination.findings})
    extent = f"{_format_count(examination.tasks, 'log')} checked"
    if examination.findings:
        raise CommandError(f"{_format_count(examination.findings, 'finding')}; {extent}.", returncode=1)
    if not as_json:
        printer.stdout.write(f"Nothing is wrong; {extent}.")


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _format(finding: Finding) -> str:
    return f"{finding.kind}: {finding.problem}\n    {finding.remedy}"


DOCTOR = Noun(
    help="check task logs, work, budgets, permissions, files, disks and processes; the exit code is 1 if any is wrong",
    add_arguments=_add_arguments,
    handle=_handle,
)
