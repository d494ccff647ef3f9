"""Rows that another connection has locked, and transactions that stall."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from tasks_app.database.locks import pauses
from tasks_app.database.sql import on_postgres
from tests.conftest import PATIENCE, until

needs_row_locks = pytest.mark.skipif(not on_postgres(), reason="SQLite locks the whole database, not single rows")


def other_connection() -> Any:
    values = connection.settings_dict
    return psycopg.connect(
        host=values["HOST"],
        port=values["PORT"],
        user=values["USER"],
        password=values["PASSWORD"],
        dbname=values["NAME"],
    )


@contextmanager
def lock_row(table: str, column: str, value: str) -> Iterator[Callable[[], None]]:
    """Lock a row from another connection, and give the function that releases it."""
    with other_connection() as other:
        other.execute(f"select 1 from tasks_app_{table} where {column} = %s for update", (value,))  # noqa: S608
        yield other.rollback


def waiting_for_locks() -> int:
    """Count the sessions that wait for a lock at this moment."""
    with other_connection() as other:
        row = other.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone()
    return int(row[0])


@contextmanager
def under_way(*work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Do pieces of work in threads meanwhile, and give their results at the end."""
    results: list[Any] = []

    def one(function: Callable[[], Any]) -> None:
        try:
            results.append(function())
        except Exception as error:  # noqa: BLE001  # a result like any other
            results.append(error)
        finally:
            connections.close_all()  # those of this thread

    threads = [threading.Thread(target=one, args=(function,), daemon=True) for function in work]
    for thread in threads:
        thread.start()
    yield results
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def stall() -> None:
    """Leave the transaction of this thread idle until the server has ended its session, as a frozen process does."""
    session = connection.connection.info.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("set local idle_in_transaction_session_timeout = '1ms'")
    with other_connection() as other:
        look = "select not exists (select 1 from pg_stat_activity where pid = %s)"
        until(lambda: other.execute(look, (session,)).fetchone()[0], "the session has ended")


def asked_twice(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Return a function that says whether a caller was asked to come again."""
    seen: list[float] = []

    def counted(seconds: float) -> Iterator[float]:
        for pause in pauses(seconds):
            seen.append(pause)
            yield pause

    monkeypatch.setattr("tasks_app.database.bridge.pauses", counted)
    return lambda: bool(seen)
