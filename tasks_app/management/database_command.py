"""The base class of commands that read or write the database."""

from collections.abc import Iterator
from typing import Any, Literal

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.models import QuerySet

from a2a.terminals import safe_json
from tasks_app.database.keyset import fetch_page
from tasks_app.database.schema import lacking
from tasks_app.database.sql import on_postgres

MOST_LINES = 10_000
"""Lines that a list prints at most."""
DEFAULT_LINES = 100
"""Lines that a list prints without --limit."""
EXIT_MORE = 3
"""The exit code of a search that found more rows than it printed, if it was run without --limit."""


class DatabaseCommand(BaseCommand):
    """A command that ends with one sentence, not with a traceback, if the database lacks migrations."""

    requires_migrations_checks = True
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()
    """No system checks by default: they take a second, and their warnings matter only to commands that serve."""

    def check_migrations(self) -> None:
        if count := lacking():
            plural = "migration" if count == 1 else "migrations"
            # The name shows a command that was called without the DATA_DIR or DATABASE_URL of the server.
            name = connection.settings_dict["NAME"]
            if not on_postgres() and not connection.introspection.table_names():
                raise CommandError(
                    f"The database {name} is empty: no server has used it yet. Set DATA_DIR to that of your server, "
                    "start a server, or run manage.py migrate."
                )
            raise CommandError(f"The database {name} lacks {count} {plural}: run manage.py migrate first.")

    def limit_rows(self, rows: QuerySet[Any], limit: int) -> Iterator[Any]:
        """Yield up to `limit` rows, and report on stderr if there are more."""
        page, more = fetch_page(rows, limit)
        yield from page
        if more:
            self.stderr.write(_describe_more(limit))

    def report_more(self, count: int, most: int, limit: int | None) -> None:
        """Report on stderr that a search found more than `most` rows. Raise CommandError if no --limit was given."""
        if count <= most:
            return
        if limit is None:
            raise CommandError(_describe_more(most), returncode=EXIT_MORE)
        self.stderr.write(_describe_more(most))

    def print_line(self, value: dict[str, Any]) -> None:
        """Print the value as a line of JSON, in which the control characters of callers and agents are escaped."""
        self.stdout.write(safe_json(orjson.dumps(value).decode()))


def _describe_more(most: int) -> str:
    return f"There are more than {most:,}: --limit N prints up to {MOST_LINES:,}."


def describe_failure(error: Exception) -> str:
    """Return the sentence that manage.py prints instead of a traceback if the database cannot be used."""
    return f"The database {describe_database()} cannot be used: {' '.join(str(error).split())}"


def describe_database() -> str:
    """Return where the database is, without its password."""
    params = connection.get_connection_params()
    if "dbname" not in params:
        return str(params["database"])
    port = f":{params['port']}" if params.get("port") else ""
    return f"{params['dbname']} at {params.get('host') or 'the local socket'}{port} (DATABASE_URL)"
