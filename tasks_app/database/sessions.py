"""Sessions of the database that are worth keeping: which are dropped, and for how long one statement may run."""

import re
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

_SPENT = re.compile("25006|57P0[1-5]|53...|08...")
"""SQLSTATEs of a session that is not to be used again: it is read-only, its server shuts down or is short of something,
or it is lost. A new one may fare better: hosters make a database read-only when its disk is full, and undo it later."""
_OVERLOADED = re.compile("54...")
"""SQLSTATEs of a statement that is too large for the server as a whole, though its parts may not be."""
_CANCELED = "57014"
_STEPS = 20_000
"""Instructions of SQLite's machine between two looks at the clock: about a millisecond."""
_local = threading.local()


def sqlstate(error: BaseException) -> str:
    """Return what PostgreSQL calls the error; empty where it has no name for it."""
    return getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None) or ""


def spent(error: BaseException) -> bool:
    """Whether the session of the error should be closed."""
    return bool(_SPENT.fullmatch(sqlstate(error)))


def overloaded(error: BaseException) -> bool:
    """Whether the statement was too large, and a smaller one may pass."""
    return bool(_OVERLOADED.fullmatch(sqlstate(error)))


def too_slow(error: BaseException) -> bool:
    """Whether the statement was ended because it took longer than `limited` allows."""
    return sqlstate(error) == _CANCELED or str(error) == "interrupted"


def drop_if_spent(error: BaseException) -> None:
    """Have the connection of this thread closed before its next use if the error says so.

    A session that became read-only answers every look at it. Only its errors tell, so they are looked at where they
    occur: in `statements.prepared`, and in a wrapper around Django's own cursors.
    """
    if spent(error):
        connection.close_at = time.monotonic()


def keep_connection_usable() -> None:
    """Drop a connection that broke or that the server closed while it was idle (measured: without the look at the
    socket the first group after a restart of PostgreSQL fails)."""
    connection.close_if_unusable_or_obsolete()
    if connection.vendor != "postgresql" or connection.connection is None:
        return
    poll = select.poll()
    poll.register(connection.connection.fileno(), select.POLLIN)
    if poll.poll(0) and not connection.is_usable():
        connection.close()


def limit_statements(seconds: float) -> None:
    """End every statement of this thread that takes longer, from the next connection it opens."""
    _local.seconds = seconds


def begin_statements() -> None:
    """Start the clock anew: on SQLite the limit holds for all statements since this call."""
    if seconds := getattr(_local, "seconds", 0.0):
        _local.ends = time.monotonic() + seconds


def _opened(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if _watched not in connection.execute_wrappers:
        connection.execute_wrappers.append(_watched)
    seconds = getattr(_local, "seconds", 0.0)
    if not seconds:
        return
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, false)", [f"{seconds * 1000:.0f}"])
    else:
        connection.connection.set_progress_handler(_over, _STEPS)


def _over() -> bool:
    return time.monotonic() > getattr(_local, "ends", float("inf"))


def _watched(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    try:
        return execute(sql, params, many, context)
    except Exception as error:
        drop_if_spent(error)
        raise


connection_created.connect(_opened, dispatch_uid="tasks_app.database.sessions")
