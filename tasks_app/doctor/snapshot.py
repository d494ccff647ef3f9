"""One consistent view of a live database, which neither waits for writers nor holds them up."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from tasks_app.database.rows import on_postgres


@contextmanager
def snapshot() -> Iterator[None]:
    """Let every statement of the block see the database as of its first one."""
    if on_postgres():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read, read only")
            yield
        return
    # Not atomic(): here that begins with the lock of all writers, and a reader needs none.
    with connection.cursor() as cursor:
        cursor.execute("begin deferred")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("rollback")
