"""`manage.py a2a cardkey`: a new key to sign agent cards with, as PEM."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.nouns import Noun, Printer

ALGORITHMS = ("ES256", "EdDSA", "RS256")
"""Names of the algorithms of `a2a.signatures`."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        default="ES256",
        help="the algorithm of the signature; ES256 by default",
    )


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    from a2a.signatures import new_key  # loads the libraries of cryptography, for which the other nouns need not wait

    printer.stdout.write(new_key(options["algorithm"]), ending="")


CARDKEY = Noun(
    help="print a new key for A2A_CARD_KEY, without storing it",
    add_arguments=_add_arguments,
    handle=_handle,
    needs_database=False,
)
