"""The one migration of new databases, beside those that it replaces."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tasks_app.database.sql import on_postgres
from tests.conftest import ROOT
from tests.support import servers

PART = "0040_audit"
"""A migration in the middle of those that are replaced."""
SCRIPT = f"""
import django
django.setup()
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
executor = MigrationExecutor(connection)
executor.loader = MigrationLoader(connection, replace_migrations=False)
executor.migrate([("tasks_app", "{PART}")])
call_command("migrate", verbosity=0)
"""
"""Begins as a version before the one migration did, and goes on as any database does."""
POSTGRES = """
select table_name, column_name, data_type, character_maximum_length, is_nullable, column_default, is_identity
    from information_schema.columns where table_name like 'tasks_app%';
select tablename, indexdef from pg_indexes where tablename like 'tasks_app%';
select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
    where conrelid::regclass::text like 'tasks_app%';
select tgrelid::regclass::text, pg_get_triggerdef(oid) from pg_trigger
    where not tgisinternal and tgrelid::regclass::text like 'tasks_app%';
select proname, prosrc, proconfig::text from pg_proc where proname like 'tasks_app%'
"""
SQLITE = """
select m.name, c.name, c.type, c.'notnull', c.dflt_value, c.pk from sqlite_master m
    join pragma_table_info(m.name) c where m.type = 'table' and m.name like 'tasks_app%';
select m.name, k.'table', k.'from', k.'to', k.on_delete from sqlite_master m
    join pragma_foreign_key_list(m.name) k where m.name like 'tasks_app%';
select type, name, sql from sqlite_master where type in ('index', 'trigger') and tbl_name like 'tasks_app%'
"""
Read = Callable[[str], list[Any]]


def read_here(query: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


@contextmanager
def database(folder: Path) -> Iterator[tuple[dict[str, str], Read]]:
    """Give an empty database: the settings that lead to it, and a function that reads it."""
    if on_postgres():
        with servers.postgres(durable=False) as url, psycopg.connect(url, autocommit=True) as other:
            yield {"DATABASE_URL": url}, lambda query: other.execute(query.encode()).fetchall()
        return
    with closing(sqlite3.connect(folder / "taskdesk.sqlite3")) as file:
        yield {"DATABASE_URL": ""}, lambda query: file.execute(query).fetchall()


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_an_older_database_gets_the_tables_that_a_new_one_has(tmp_path: Path) -> None:
    with database(tmp_path) as (place, read_there):
        environment = os.environ | place | {"DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings"}
        command = [sys.executable, "-c", SCRIPT]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=servers.COMMAND_SECONDS)
        applied = {name for (name,) in read_there("select name from django_migrations where app = 'tasks_app'")}
        assert {PART, "0065_share_of_budgets", "0001_squashed_0065"} <= applied
        for query in (POSTGRES if on_postgres() else SQLITE).split(";"):
            here, there = ({tuple(row) for row in read(query)} for read in (read_here, read_there))
            assert here
            assert there == here, query
