"""The sentences of /readyz about a database and a process that are there, but not as they should be."""

import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from tasks_app.database.schema import lacking
from tasks_app.event_log import create_many
from tasks_app.models import Process
from tasks_app.process.health import Latest, _report, find_lags, find_problems
from tasks_app.runner.watchdog import Watchdog
from tasks_app.upkeep.processes import process_row
from tasks_app.upkeep.sweeps import sweeper
from tests.conftest import Person
from tests.operations.rows import creation
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
MISSING = "database: migrations are missing, run manage.py migrate"


def problems() -> list[str]:
    return [reason for reason in async_to_sync(find_problems)() if reason.startswith("database: ")]


def test_a_database_that_has_had_all_migrations_is_ready() -> None:
    assert problems() == []
    assert lacking() == 0


def test_a_database_that_lacks_a_migration_is_told_from_one_that_is_away() -> None:
    MigrationRecorder(connection).record_unapplied("tasks_app", "0003_webhooks")
    assert lacking() == 1
    assert problems() == [MISSING]


def test_an_empty_database_lacks_all_migrations() -> None:
    with connection.cursor() as cursor:
        cursor.execute("alter table django_migrations rename to gone")
    assert lacking() > 10
    assert problems() == [MISSING]


def test_migrations_of_a_newer_release_do_no_harm() -> None:
    MigrationRecorder(connection).record_applied("tasks_app", "9999_of_tomorrow")
    assert problems() == []


def test_a_task_that_nobody_runs_makes_things_late(owner: Person, hand: Hand) -> None:
    create_many([creation(owner, "k", agent="of-another-release")])
    assert async_to_sync(find_lags)() == []
    hand.on(seconds=61)
    (sentence,) = async_to_sync(find_lags)()
    assert "agent of-another-release has waited to be run for more than 60 s" in sentence
    assert "queue default" in sentence


def test_a_process_beyond_help_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watchdog, "helpless", "runner: no thread is left")
    report = async_to_sync(Latest(_report).latest)()
    assert (report.problems + report.lags).count("runner: no thread is left") == 1


def test_a_process_that_no_longer_sweeps_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "last", time.monotonic() - 60)
    (reason,) = [reason for reason in async_to_sync(find_problems)() if reason.startswith("sweeper")]
    assert reason == "sweeper: the last sweep was 60 s ago, one is due every 0.5 s"
    monkeypatch.setattr(sweeper, "last", time.monotonic())
    assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("sweeper")]


def test_a_process_that_cannot_write_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_row, "last_write", time.monotonic() - 60)
    (reason,) = [reason for reason in async_to_sync(find_problems)() if reason.startswith("writes")]
    assert reason == "writes: the sweeper last wrote 60 s ago, one is due every 0.5 s; see the log"
    monkeypatch.setattr(process_row, "last_write", time.monotonic())
    assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("writes")]


def test_readiness_tries_a_write_that_must_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_row, "last_write", time.monotonic() - 60)

    def refused(*args: Any, **more: Any) -> None:
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(Process.objects, "bulk_create", refused)
        with pytest.raises(OperationalError):
            process_row.write()
        assert [reason for reason in async_to_sync(find_problems)() if reason.startswith("writes")]
    process_row.write()
    assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("writes")]
