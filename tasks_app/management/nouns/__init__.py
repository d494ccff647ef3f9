"""The nouns of `manage.py a2a`, one a module. Each adds its arguments and does its work; the command only chooses."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from django.db.models import QuerySet
from msgspec import Struct


class Printer(Protocol):
    """The command, as far as a noun needs it."""

    stdout: Any

    def line(self, value: dict[str, Any]) -> None:
        """Print the value as a line of JSON."""
        ...

    def newest(self, rows: QuerySet[Any], limit: int) -> Iterator[Any]:
        """Give the first rows, as many as the limit; then say on stderr if there are more."""
        ...


class Noun(Struct, frozen=True, kw_only=True):
    """One word after `manage.py a2a`."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    handle: Callable[[Printer, dict[str, Any]], None]
    """Raises CommandError."""
    needs_database: bool = True
    """The database must have every migration before the work begins."""
