"""What commands share that need the database: what keeps them from it is said in a line; how arguments are read."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection

from tasks_app.health import lacking

LONGEST = 10_000
"""Rows that a list prints at most."""


class DatabaseCommand(BaseCommand):
    """A command that ends with a sentence where it would end with the traceback of a missing table or server."""

    requires_migrations_checks = True

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (OperationalError, InterfaceError) as error:
            raise CommandError(f"The database {place()} cannot be used: {' '.join(str(error).split())}") from error

    def check_migrations(self) -> None:
        if count := lacking():
            plural = "migration" if count == 1 else "migrations"
            raise CommandError(f"The database lacks {count} {plural}: run manage.py migrate first.")


def place() -> str:
    """Where the database is, without its password."""
    found = connection.get_connection_params()
    if "dbname" not in found:
        return str(found["database"])
    port = f":{found['port']}" if found.get("port") else ""
    return f"{found['dbname']} at {found.get('host') or 'the local socket'}{port} (DATABASE_URL)"


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
