"""Cursors for the statements of every call. On PostgreSQL each statement is planned once. On both databases its
placeholders are translated once.

To plan a large statement takes as long as to run it for one task (0.5 of 1.7 ms). Django's own cursors put the values
into the text, so that no two statements are alike. These cursors have the server bind the values.
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

from tasks_app.database.sessions import drop_if_spent
from tasks_app.database.sql import on_postgres

_MARK = re.compile("(?<!%)%s")
FRESH = 1.0
"""Seconds for which a plan is kept. A plan for an almost empty table reads the whole table once it has grown."""

_plans = threading.local()


@contextmanager
def prepared() -> Iterator[Any]:
    """Give a cursor of this thread's connection. Raises the errors of Django's cursors."""
    if connection.force_debug_cursor and not on_postgres():
        # Statements are recorded for debugging, which only Django's cursors do.
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    if on_postgres():
        _keep_plans_fresh()
    try:
        with connection.wrap_database_errors, closing(_cursor()) as cursor:
            yield cursor
    except DatabaseError as error:
        drop_if_spent(error)
        raise


def _cursor() -> Any:
    raw: Any = connection.connection
    if not on_postgres():
        # The connection has a weak reference to each of its cursors. It drops those of dead cursors at every 200th call
        # of cursor(), and never if cursors are made in another way.
        return raw.cursor(QmarkCursor)
    from tasks_app.database.dollars import DollarCursor  # It loads psycopg, which SQLite does without.

    return DollarCursor(raw)


class QmarkCursor(sqlite3.Cursor):
    """A cursor of SQLite that takes the placeholders of Django's cursors. Those translate a statement at each
    execution, which takes as long as SQLite takes to run it."""

    def execute(self, sql: str, values: Any = None, /) -> "QmarkCursor":
        if values is None:
            super().execute(sql)
        else:
            super().execute(_with_qmarks(sql), values)
        return self

    def executemany(self, sql: str, rows: Any, /) -> "QmarkCursor":
        super().executemany(_with_qmarks(sql), rows)
        return self


@lru_cache(maxsize=512)
def _with_qmarks(sql: str) -> str:
    return _MARK.sub("?", sql).replace("%%", "%")


def _keep_plans_fresh() -> None:
    now = time.monotonic()
    if now - getattr(_plans, "at", 0.0) < FRESH or connection.in_atomic_block:
        return
    _plans.at = now
    with connection.cursor() as cursor:
        cursor.execute("discard plans")
