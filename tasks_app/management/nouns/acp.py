"""`manage.py a2a acp`: the JSON Schema of ACP, and the faults of cards and requests in files."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import CommandError

from a2a.dialects.acp import schema
from a2a.terminals import safe_text
from tasks_app.management.arguments import read_text
from tasks_app.management.nouns import Noun, Printer

CHECKS = {"card": schema.card_faults, "request": schema.request_faults}
"""The function that finds the faults of a file, by the verb."""


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("schema", help="print the JSON Schema of requests, answers and cards")
    for verb in CHECKS:
        check = verbs.add_parser(verb, help=f"print all faults of a {verb} in a file; exit code 1 if it has any")
        check.add_argument("file", type=read_text, help="a file with one JSON value, or - for standard input")


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "schema":
        printer.stdout.write(orjson.dumps(schema.schema(), option=orjson.OPT_INDENT_2).decode())
        return
    faults = CHECKS[options["verb"]](_read(options["file"]))
    for fault in faults:
        printer.stdout.write(safe_text(f"{fault.place or 'the whole value'}: {fault.text}"))
    if faults:
        raise CommandError(f"{options['file']} has faults, {len(faults)} in all", returncode=1)
    printer.stdout.write(f"{options['file']}: no faults")


def _read(name: str) -> Any:
    """Return the JSON value in a file. Raises CommandError, whose exit code is 2."""
    try:
        return orjson.loads(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}", returncode=2) from None
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{name} is not JSON: {error}", returncode=2) from None


ACP = Noun(
    help="print the JSON Schema of ACP, or check a card or a request of ACP in a file",
    add_arguments=_add_arguments,
    handle=_handle,
    needs_database=False,
)
