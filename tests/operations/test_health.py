"""What /readyz says when the database is there, but not as this process needs it."""

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tasks_app.health import lacking, problems

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
MISSING = "database: migrations are missing, run manage.py migrate"


def said() -> list[str]:
    return [reason for reason in async_to_sync(problems)() if reason.startswith("database: ")]


def test_a_database_that_has_had_all_migrations_is_ready() -> None:
    assert said() == []
    assert lacking() == 0


def test_a_database_that_lacks_a_migration_is_told_from_one_that_is_away() -> None:
    MigrationRecorder(connection).record_unapplied("tasks_app", "0003_webhooks")
    assert lacking() == 1
    assert said() == [MISSING]


def test_an_empty_database_lacks_all_migrations() -> None:
    with connection.cursor() as cursor:
        cursor.execute("alter table django_migrations rename to gone")
    assert lacking() > 10
    assert said() == [MISSING]


def test_migrations_of_a_newer_release_do_no_harm() -> None:
    MigrationRecorder(connection).record_applied("tasks_app", "9999_of_tomorrow")
    assert said() == []
