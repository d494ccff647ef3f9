"""The database of plain tests: quick to commit, and emptied after each test that commits.

Django empties every table and then makes the rows of migrations anew, which takes longer than most tests. Here one
statement finds the tables that have rows, and only these are emptied.
"""

from django.conf import settings
from django.db import connection, transaction
from django.test import TransactionTestCase

from tests.support.triggers import GUARDED, unguarded

MIGRATED = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")
"""Tables whose rows migrations make and most tests leave alone: they keep them."""

_flush = TransactionTestCase._fixture_teardown
_expected: dict[str, int] = {}
"""The number of rows in each of these tables, as migrations left them."""


def prepare() -> None:
    """Give up what plain tests do not need: commits that survive a power cut, and the emptying of empty tables."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
    TransactionTestCase._fixture_setup = classmethod(_remember)  # type: ignore[assignment,method-assign]
    TransactionTestCase._fixture_teardown = _empty  # type: ignore[method-assign]


def _remember(_case: type[TransactionTestCase]) -> None:
    if not _expected:
        rows = _rows()
        _expected.update({name: rows[name] for name in MIGRATED})


def _empty(case: TransactionTestCase) -> None:
    rows = _rows()
    transact = unguarded if GUARDED & rows.keys() else transaction.atomic
    if {name: rows.pop(name) for name in MIGRATED} != _expected:
        with transact():
            _flush(case)
        return
    # Foreign keys are checked at the end of the transaction, so any order will do.
    with transact(), connection.cursor() as cursor:
        for name in rows:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608


def _rows() -> dict[str, int]:
    """Return the tables that have rows: 1 for an ordinary one, the number of them for one that migrations fill."""
    ordinary = sorted(set(connection.introspection.django_table_names()) - set(MIGRATED))
    counts = [f"SELECT '{name}', count(*) FROM {name}" for name in MIGRATED]  # noqa: S608
    found = [f"SELECT '{name}', 1 WHERE EXISTS (SELECT 1 FROM {name})" for name in ordinary]  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(counts + found))
        return dict(cursor.fetchall())
