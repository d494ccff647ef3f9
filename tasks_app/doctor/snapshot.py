"""A consistent view of a live database that neither waits for writers nor makes them wait."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from tasks_app.database.sql import on_postgres


@contextmanager
def snapshot() -> Iterator[None]:
    """Let every statement of the block see the database as of the first statement."""
    if on_postgres():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read, read only")
            yield
        return
    # Not atomic(): on SQLite our settings make it BEGIN IMMEDIATE, which takes the lock of all writers.
    with connection.cursor() as cursor:
        cursor.execute("begin deferred")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("rollback")


@contextmanager
def step() -> Iterator[None]:
    """Let a statement of the block fail without an end of the snapshot. PostgreSQL needs a savepoint for that."""
    if on_postgres():
        with transaction.atomic():
            yield
    else:
        yield
