"""The one place that reads the time of day. Django's own now() looks at a setting each time."""

from datetime import UTC, datetime

from django.db import connection


def now() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


def shared() -> datetime:
    """Now by the one clock that all processes of a database share: leases are compared between machines, whose own
    clocks may differ. On PostgreSQL the server's, on SQLite that of the only machine there is."""
    if connection.vendor != "postgresql":
        return now()
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found
