"""Sessions of PostgreSQL that tests in this process hand on to the tests after them.

Each test has lanes of its own, and each thread of a lane has a connection. A new session is a process of the server
whose caches are empty, and three of them took a fifth of the time of a test.
"""

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.pq import TransactionStatus

_new, _close, _close_pool = DatabaseWrapper.get_new_connection, DatabaseWrapper._close, DatabaseWrapper.close_pool
MOST = 4
"""Sessions that a process keeps while nobody uses them. The servers that tests start need many, too."""
_LEAVE_NOTHING = "select pg_advisory_unlock_all(); reset all"
_idle: list["psycopg.Connection[Any]"] = []
_lock = threading.Lock()
_new_ones_only = threading.Event()


def prepare() -> None:
    """Have connections take a session that an earlier one has left, and leave theirs when they are closed."""
    DatabaseWrapper.get_new_connection = _take  # type: ignore[method-assign]
    DatabaseWrapper._close = _leave  # type: ignore[method-assign]
    DatabaseWrapper.close_pool = _end_all  # type: ignore[method-assign]


@contextmanager
def new_sessions() -> Iterator[None]:
    """Have every connection open a session of its own, as outside tests. For tests of what makes a session useless."""
    _new_ones_only.set()
    _end_idle()
    try:
        yield
    finally:
        _new_ones_only.clear()


def _take(self: DatabaseWrapper, params: dict[str, Any]) -> Any:
    while _is_of_tests(params["dbname"]):
        with _lock:
            session = _idle.pop() if _idle else None
        if session is None:
            break
        if session.info.dbname == params["dbname"] and not _has_news(session):
            return session
        session.close()
    return _new(self, params)


def _leave(self: DatabaseWrapper) -> None:
    session = self.connection
    if session is None or session.closed or _new_ones_only.is_set() or not _is_of_tests(session.info.dbname):
        return _close(self)
    try:
        if session.info.transaction_status != TransactionStatus.IDLE:
            session.rollback()
        session.autocommit = True
        session.execute(_LEAVE_NOTHING)
    except psycopg.Error:
        return _close(self)
    with _lock:
        is_kept = len(_idle) < MOST
        if is_kept:
            _idle.append(session)
    return None if is_kept else _close(self)


def _end_all(self: DatabaseWrapper) -> None:
    """End the sessions. Django calls this before it drops the database."""
    _end_idle()
    _close_pool(self)


def _end_idle() -> None:
    while _idle:
        _idle.pop().close()


def _is_of_tests(name: str) -> bool:
    """Return whether this is the database of the tests: a session with another one may make or drop that."""
    return name == settings.DATABASES["default"]["NAME"] and name.startswith("test_")


def _has_news(session: "psycopg.Connection[Any]") -> bool:
    """Return whether the server has said something meanwhile: that it ends the session, or has ended it."""
    poll = select.poll()
    poll.register(session.fileno(), select.POLLIN)
    return bool(poll.poll(0))
