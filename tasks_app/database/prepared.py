"""Cursors for the statements of every call: on PostgreSQL they are planned once, not each time, and on SQLite the
statements are translated once.

To plan one of the large ones takes as long as to run it for one task (0.5 of 1.7 ms). Django's own cursors put
the values into the text, so that no two statements are alike; these leave the binding of values to the server.
"""

import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

from django.db import DatabaseError, connection

from tasks_app.database.rows import on_postgres
from tasks_app.database.sessions import drop_if_spent

_MARK = re.compile("(?<!%)%s")
FRESH = 1.0
"""Seconds that a plan is kept: one that was made for an almost empty table reads all of it when it has grown."""

_planned = threading.local()


@contextmanager
def prepared() -> Iterator[Any]:
    """A cursor of this thread's connection. Raises the errors of Django's cursors."""
    if connection.force_debug_cursor and not on_postgres():
        # Statements are being recorded, which only Django's cursors do.
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    if on_postgres():
        _keep_plans_fresh()
    try:
        with connection.wrap_database_errors, closing(_bound()) as bound:
            yield bound
    except DatabaseError as error:
        drop_if_spent(error)
        raise


def _bound() -> Any:
    database: Any = connection  # on PostgreSQL its module is psycopg
    return (database.Database.Cursor if on_postgres() else Marked)(database.connection)


class Marked(sqlite3.Cursor):
    """A cursor of SQLite that takes the marks of Django's cursors. Those translate the marks of each statement each
    time, and look at what else might be around it, which takes as long as SQLite takes to run it."""

    def execute(self, sql: str, values: Any = None, /) -> "Marked":
        if values is None:
            super().execute(sql)
        else:
            super().execute(_marked(sql), values)
        return self

    def executemany(self, sql: str, rows: Any, /) -> "Marked":
        super().executemany(_marked(sql), rows)
        return self


@lru_cache(maxsize=512)
def _marked(sql: str) -> str:
    return _MARK.sub("?", sql).replace("%%", "%")


def _keep_plans_fresh() -> None:
    now = time.monotonic()
    if now - getattr(_planned, "at", 0.0) < FRESH or connection.in_atomic_block:
        return
    _planned.at = now
    with connection.cursor() as cursor:
        cursor.execute("discard plans")
