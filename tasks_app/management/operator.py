"""What the commands of operators share: how their arguments are read."""

from argparse import ArgumentTypeError

LONGEST = 10_000
"""Rows that a list prints at most."""


def limit_of(text: str) -> int:
    """How many rows, of an argument."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= LONGEST):
        raise ArgumentTypeError(f"must be a number from 1 to {LONGEST:,}, not {text!r}")
    return int(text)


def name_of(text: str) -> str:
    """A name that people tell things apart by, of an argument. Fits every column of a name."""
    if not (1 <= len(text) <= 64 and text.strip() and text.isprintable()):
        raise ArgumentTypeError(f"must have 1 to 64 printable characters, not {len(text)}: {text[:70]!r}")
    return text


def scopes_of(text: str) -> str:
    """Scopes of a key, of an argument."""
    if "," in text:
        raise ArgumentTypeError("separate scopes by spaces, not by commas")
    if not (1 <= len(text) <= 255 and text.strip() and text.isprintable()):
        raise ArgumentTypeError(f"must have 1 to 255 printable characters, not {len(text)}")
    return text
