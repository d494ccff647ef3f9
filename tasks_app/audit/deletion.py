"""Deletion of the oldest entries of the audit. The triggers of the table refuse every other deletion.

They also refuse it here for entries of the last 23 hours, which are younger than A2A_AUDIT_DAYS can be.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from tasks_app.database.sql import on_postgres
from tasks_app.models import AuditEntry

PERMIT = "only_retention_deletes_audit_rows"
"""The function that the triggers ask on SQLite. A program that has not registered it gets its name as the error."""
_TABLE = AuditEntry._meta.db_table
_POSTGRES = f"""
delete from {_TABLE} where ctid = any(array(
    select ctid from {_TABLE} where id > %s and id < %s order by id limit %s for update skip locked))
returning id
"""
_SQLITE = f"""
delete from {_TABLE} where rowid in (select rowid from {_TABLE} where id > %s and id < %s order by id limit %s)
returning id
"""


def delete_entries(before: str, place: str, limit: int) -> list[str]:
    """Delete entries between two ids, from the oldest on up to a number of them; return their ids."""
    with permit_deletion(), connection.cursor() as cursor:
        cursor.execute(_POSTGRES if on_postgres() else _SQLITE, (place, before, limit))
        return [id for (id,) in cursor.fetchall()]


@contextmanager
def permit_deletion() -> Iterator[None]:
    """Have the triggers permit the deletion of old entries in one transaction of this connection."""
    with transaction.atomic():
        if on_postgres():
            with connection.cursor() as cursor:
                cursor.execute("set local taskdesk.retention = 'on'")
            yield
            return
        database: Any = connection.connection
        database.create_function(PERMIT, 0, lambda: 1)
        try:
            yield
        finally:
            database.create_function(PERMIT, 0, lambda: 0)
