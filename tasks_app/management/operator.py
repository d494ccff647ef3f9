"""The base of commands: a sentence where the database cannot be used, the operator who acts, and readers of
arguments."""

import os
import pwd
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter, _ActionsContainer
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import orjson
from django.core.management.base import BaseCommand, CommandError, DjangoHelpFormatter
from django.db import connection
from django.db.models import QuerySet

from tasks_app import clock
from tasks_app.database.schema import lacking
from tasks_app.operators.audit import COMMAND, Operator

LONGEST = 10_000
"""Rows that a list prints at most."""
LINES = 100
"""Rows that a list prints unless told otherwise."""
CUT = 3
"""The exit code of a look-up that did not print all it found, and was not told how many to print."""
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class DatabaseCommand(BaseCommand):
    """A command that ends with a sentence where it would end with the traceback of a missing table."""

    requires_migrations_checks = True
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()
    """Checks that run first. Servers run them all; a command that only looks spares their warnings and their second."""

    def check_migrations(self) -> None:
        if count := lacking():
            plural = "migration" if count == 1 else "migrations"
            raise CommandError(f"The database lacks {count} {plural}: run manage.py migrate first.")

    def newest(self, rows: QuerySet[Any], limit: int) -> Iterator[Any]:
        """Give the first rows, as many as the limit; then say on stderr if there are more."""
        for number, row in enumerate(rows[: limit + 1]):
            if number == limit:
                self.stderr.write(f"There are more than these {limit:,}: --limit N prints up to {LONGEST:,}.")
                return
            yield row

    def cut(self, count: int, most: int, limit: int | None) -> None:
        """Say that a look-up found more than it printed; an error where it was not told how many to print."""
        if count <= most:
            return
        sentence = f"There are more than these {most:,}: --limit N prints up to {LONGEST:,}."
        if limit is None:
            raise CommandError(sentence, returncode=CUT)
        self.stderr.write(sentence)

    def line(self, value: dict[str, Any]) -> None:
        """Print the value as a line of JSON."""
        self.stdout.write(orjson.dumps(value).decode())


def unusable(error: Exception) -> str:
    """Return the sentence of manage.py for a database that cannot be used, in place of a traceback."""
    return f"The database {place()} cannot be used: {' '.join(str(error).split())}"


def place() -> str:
    """Return where the database is, without its password."""
    found = connection.get_connection_params()
    if "dbname" not in found:
        return str(found["database"])
    port = f":{found['port']}" if found.get("port") else ""
    return f"{found['dbname']} at {found.get('host') or 'the local socket'}{port} (DATABASE_URL)"


def account() -> str:
    """Return the account that runs this."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number that has no name
        return str(os.getuid())


class _Lines(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Leaves the lines of examples as they are."""


def takes_examples(parser: ArgumentParser, *lines: str) -> None:
    """Show command lines at the end of the help."""
    parser.formatter_class = _Lines
    parser.epilog = "\n".join(["examples:", *(f"  manage.py {line}" for line in lines)])


def ids_of(arguments: Sequence[str]) -> list[str]:
    """Return the ids that are named; of a single dash those of the standard input, however many they are."""
    return sys.stdin.read().split() if list(arguments) == ["-"] else list(arguments)


def takes_operator(parser: ArgumentParser) -> None:
    """Add the arguments that name the operator and the reason."""
    parser.add_argument(
        "--operator", type=name_of, default=account(), help="the name that is written down; your account if left out"
    )
    parser.add_argument("--reason", type=reason_of, default="", help="why, to be written down as well")


def takes_limit(parser: ArgumentParser) -> None:
    """Add the argument that limits the lines of a list."""
    parser.add_argument("--limit", type=limit_of, default=LINES, help=f"lines; {LINES} if left out")


def takes_since(parser: _ActionsContainer) -> None:
    """Add the argument that says from when on a list prints lines."""
    parser.add_argument("--since", type=time_of, metavar="TIME", help="2026-11-21T03:00 (UTC), or an age: 15m, 7d")


def by(options: Mapping[str, Any]) -> Operator:
    """Return who acts, of the options that `takes_operator` has added."""
    return Operator(name=options["operator"], door=COMMAND, reason=options["reason"])


def within(lowest: int, highest: int) -> Callable[[str], int]:
    """Reads a number of an argument."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and lowest <= int(text) <= highest):
            raise ArgumentTypeError(f"must be a number from {lowest:,} to {highest:,}, not {text!r}")
        return int(text)

    return read


limit_of = within(1, LONGEST)


def name_of(text: str) -> str:
    """A name that people tell things apart by, of an argument. Fits every column of a name."""
    if not (1 <= len(text) <= 64 and text.strip() and text.isprintable()):
        raise ArgumentTypeError(f"must have 1 to 64 printable characters, not {len(text)}: {text[:70]!r}")
    return text


def reason_of(text: str) -> str:
    """A reason for an act, of an argument."""
    if not (len(text) <= 255 and text.isprintable()):
        raise ArgumentTypeError(f"must have at most 255 printable characters, not {len(text)}: {text[:70]!r}")
    return text


def scopes_of(text: str) -> str:
    """Scopes of a key, of an argument."""
    if "," in text:
        raise ArgumentTypeError("separate scopes by spaces, not by commas")
    if not (1 <= len(text) <= 255 and text.strip() and text.isprintable()):
        raise ArgumentTypeError(f"must have 1 to 255 printable characters, not {len(text)}")
    return text


def time_of(text: str) -> datetime:
    """A time in UTC unless it says otherwise, or how long ago it was, of an argument."""
    ago = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    try:
        if ago:
            return clock.now() - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"must be a time such as 2026-11-21T03:00 or an age such as 15m: {text!r}") from None
