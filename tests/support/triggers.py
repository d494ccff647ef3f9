"""The triggers that guard the audit, put aside for the moment in which tests empty its tables."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from tasks_app.database.sql import on_postgres
from tasks_app.models import Act, AuditEntry

GUARDED = frozenset({AuditEntry._meta.db_table, Act._meta.db_table})
"""The tables whose rows the database deletes only when they are old, or never."""


@contextmanager
def unguarded() -> Iterator[None]:
    """Put the triggers aside in one transaction of this connection. PostgreSQL needs a superuser for that."""
    with transaction.atomic(), connection.cursor() as cursor:
        if on_postgres():
            cursor.execute("set local session_replication_role = 'replica'")
            yield
            cursor.execute("set local session_replication_role = 'origin'")
            return
        cursor.execute("select name, tbl_name, sql from sqlite_master where type = 'trigger'")
        triggers = [(name, statement) for name, table, statement in cursor.fetchall() if table in GUARDED]
        for name, _ in triggers:
            cursor.execute(f"drop trigger {name}")
        yield
        for _, statement in triggers:
            cursor.execute(statement, None)
