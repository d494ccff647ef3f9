"""Sessions of the database: which are dropped, and for how long one statement may run."""

import re
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from tasks_app.database.sql import on_postgres

_SPENT_STATES = re.compile("25006|25P0[34]|57P0[1-5]|53...|08...")
"""SQLSTATEs of a session that must not be used again: it is read-only, its server shuts down or is short of a resource,
or it is lost. A new session may work: hosters make a database read-only when its disk is full, and undo that later."""
_STALL_STATES = re.compile("25P0[34]")
"""SQLSTATEs of a session that the server ended because its transaction was idle, or at work, for too long, as that of a
process that was frozen. The transaction is undone. psycopg has these among its internal errors."""
_OVERLOAD_STATES = re.compile("54...")
"""SQLSTATEs of a statement that is too large for the server, though its parts may not be."""
_CANCELED = "57014"
_STEPS = 20_000
"""Instructions of SQLite's virtual machine between two looks at the clock: about a millisecond."""
LOCK_WAIT = "50ms"
"""The longest wait of a lane of writes for a lock. A row lock of another process lasts a few milliseconds, unless that
process is frozen. Then only the items that need the row may wait, and not the lane with the items of all callers."""
_SHORTEN = "select set_config('lock_timeout', %s, false) where current_setting('lock_timeout') in ('0', '2s')"
"""Shortens the waits of a session, unless an operator has set them in DATABASE_URL."""
_local = threading.local()


class FileGone(OperationalError):
    """Raised in place of work in a file of SQLite that was removed or replaced while the process had it open. The work
    would be lost with the process."""


def sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error; empty if it has none."""
    return getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None) or ""


def is_spent(error: BaseException) -> bool:
    """Return whether the session of the error should be closed."""
    return bool(_SPENT_STATES.fullmatch(sqlstate(error)))


def is_stalled(error: BaseException) -> bool:
    """Return whether the server ended the session because its transaction took too long."""
    return bool(_STALL_STATES.fullmatch(sqlstate(error)))


def is_overloaded(error: BaseException) -> bool:
    """Return whether the statement was too large, so that a smaller one may pass."""
    return bool(_OVERLOAD_STATES.fullmatch(sqlstate(error)))


def is_canceled(error: BaseException) -> bool:
    """Return whether the statement was stopped, by a limit of its time or by an operator."""
    return sqlstate(error) == _CANCELED or str(error) == "interrupted"


def is_too_slow(error: BaseException) -> bool:
    """Return whether the statement was stopped because it took longer than `limit_statements` allows. Call it on the
    thread of the statement."""
    return is_canceled(error) and _over()


def drop_if_spent(error: BaseException) -> None:
    """Have the connection of this thread closed before its next use if the error shows that its session is spent.

    A session that became read-only passes every health check. Only its errors show it, so they are examined where they
    occur: in `prepared.prepared`, and in a wrapper around Django's own cursors.
    """
    if is_spent(error):
        connection.close_at = time.monotonic()


def keep_connection_usable() -> None:
    """Drop a connection that broke, or that the server closed while it was idle. Without the look at the socket the
    first group after a restart of PostgreSQL fails (measured). Raises FileGone."""
    connection.close_if_unusable_or_obsolete()
    if connection.connection is None:
        return
    if not on_postgres():
        _check_file()
        return
    poll = select.poll()
    poll.register(connection.connection.fileno(), select.POLLIN)
    if poll.poll(0) and not connection.is_usable():
        connection.close()


def _check_file() -> None:
    """Check that the file of this thread's connection is still at its path. Raises FileGone."""
    path, file = getattr(_local, "file", (None, None))
    if path is not None and file is not None and _file_at(path) != file:
        raise FileGone(f"the file {path} was removed or replaced while the server ran; restart the server")


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def limit_statements(seconds: float) -> None:
    """Stop every statement of this thread that takes longer, from its next connection on."""
    _local.seconds = seconds


def limit_lock_waits() -> None:
    """Refuse a lock that this thread does not get within LOCK_WAIT, from its next connection on."""
    _local.is_hasty = True


def begin_statements() -> None:
    """Start the clock again: on SQLite the limit is for all statements since this call."""
    if seconds := getattr(_local, "seconds", 0.0):
        _local.ends = time.monotonic() + seconds


def _on_connect(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if _examine_errors not in connection.execute_wrappers:
        connection.execute_wrappers.append(_examine_errors)
    if getattr(_local, "is_hasty", False) and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_SHORTEN, [LOCK_WAIT])
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])  # That of a database in memory is the path of no file.
        _local.file = path, _file_at(path)
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


def _examine_errors(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    try:
        return execute(sql, params, many, context)
    except Exception as error:
        drop_if_spent(error)
        raise


connection_created.connect(_on_connect, dispatch_uid="tasks_app.database.sessions")
