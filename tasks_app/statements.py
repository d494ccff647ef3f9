"""Cursors for the statements of every call: on PostgreSQL they are planned once, not each time.

To plan one of the large ones takes as long as to run it for one task (0.5 of 1.7 ms). Django's own cursors put
the values into the text, so that no two statements are alike; these leave the binding of values to the server.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection

from tasks_app.rows import on_postgres
from tasks_app.sessions import drop_if_spent

FRESH = 1.0
"""Seconds that a plan is kept: one that was made for an almost empty table reads all of it when it has grown."""

_planned = threading.local()


@contextmanager
def prepared() -> Iterator[Any]:
    """A cursor of this thread's connection. Raises the errors of Django's cursors."""
    if not on_postgres():
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    _keep_plans_fresh()
    try:
        with connection.wrap_database_errors, _bound() as bound:
            yield bound
    except DatabaseError as error:
        drop_if_spent(error)
        raise


def _bound() -> Any:
    database: Any = connection  # on PostgreSQL its module is psycopg
    return database.Database.Cursor(database.connection)


def _keep_plans_fresh() -> None:
    now = time.monotonic()
    if now - getattr(_planned, "at", 0.0) < FRESH or connection.in_atomic_block:
        return
    _planned.at = now
    with connection.cursor() as cursor:
        cursor.execute("discard plans")
