"""The cursors of every call take the placeholders of Django's, at any length of a statement."""

import gc

import pytest
from django.db import connection
from psycopg import _queries

from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.event_log.read_events import first_rows
from tests.conftest import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
needs_sqlite = pytest.mark.skipif(on_postgres(), reason="psycopg's connections do not list their cursors")
needs_psycopg = pytest.mark.skipif(not on_postgres(), reason="SQLite's cursors are not those of psycopg")


def test_values_stand_in_the_order_of_their_placeholders() -> None:
    with prepared() as cursor:
        cursor.execute("select %s, %s || '%%', '%%s', 'x' like 'x%%'", [0, "a"])
        (number, text, mark, matches) = cursor.fetchone()
        assert (int(number), text, mark, bool(matches)) == (0, "a%", "%s", True)
        cursor.execute("select * from (values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)) x", [*"abcdefghijk"])
        assert cursor.fetchone() == tuple("abcdefghijk")


def test_one_statement_takes_many_rows_of_values(owner: Person) -> None:
    with prepared() as cursor:
        cursor.executemany("update tasks_app_tenant set name = %s where id = %s", [("renamed", owner.caller.tenant_id)])
        cursor.execute("select name from tasks_app_tenant where id = %s", [owner.caller.tenant_id])
        assert cursor.fetchone() == ("renamed",)


def test_a_statement_without_values_is_sent_as_it_is() -> None:
    with prepared() as cursor:
        cursor.execute("select '%s', 'x' like 'x%'")
        text, matches = cursor.fetchone()
        assert (text, bool(matches)) == ("%s", True)


@needs_psycopg
def test_psycopg_translates_no_statement_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    translated: list[bytes] = []
    monkeypatch.setattr(_queries, "_split_query", lambda query, *_: translated.append(query))
    with prepared() as cursor:
        cursor.execute("select %s" + " " * 5_000, ["a"])
        assert cursor.fetchone() == ("a",)
    assert translated == []


def test_no_row_is_read_after_the_one_that_fills_a_page() -> None:
    with prepared() as cursor:
        cursor.execute("select * from (values (3, 'a'), (3, 'b'), (9, 'c'), (1, 'd'), (1, 'e')) x")
        assert list(first_rows(cursor, 7)) == [("a",), ("b",), ("c",)]
        assert cursor.fetchone() == (1, "d")
        assert list(first_rows(cursor, 7)) == [("e",)]


@needs_sqlite
def test_a_connection_forgets_the_cursors_of_reads() -> None:
    for _ in range(2_000):
        with prepared() as cursor:
            cursor.execute("select %s", ["a"])
    cursors = max(len(each) for each in gc.get_referents(connection.connection) if isinstance(each, list))
    assert cursors < 500
