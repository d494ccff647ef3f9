"""The nouns of `manage.py a2a`, one module each. A noun declares its arguments and does its work."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from django.db.models import QuerySet
from msgspec import Struct


class Printer(Protocol):
    """The part of the command that a noun prints with."""

    stdout: Any

    def print_line(self, value: dict[str, Any]) -> None:
        """Print the value as a line of JSON."""
        ...

    def limit_rows(self, rows: QuerySet[Any], limit: int) -> Iterator[Any]:
        """Yield up to `limit` rows, and report on stderr if there are more."""
        ...


class Noun(Struct, frozen=True, kw_only=True):
    """A subcommand of `manage.py a2a`."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    handle: Callable[[Printer, dict[str, Any]], None]
    """The function that does the work. It may raise CommandError."""
    needs_database: bool = True
    """True if the database must have every migration before the work begins."""
