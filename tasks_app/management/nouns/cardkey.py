"""`manage.py a2a cardkey`: a new key that signs agent cards, as PEM."""

from argparse import ArgumentParser
from typing import Any

from a2a.signatures import ALGORITHMS, new_key
from tasks_app.management.nouns import Noun, Printer


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--algorithm", choices=sorted(ALGORITHMS), default="ES256")


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    printer.stdout.write(new_key(options["algorithm"]), ending="")


CARDKEY = Noun(
    help="print a new key for A2A_CARD_KEY; it is kept nowhere",
    add_arguments=_add_arguments,
    handle=_handle,
    needs_database=False,
)
