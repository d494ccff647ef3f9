"""Triggers of SQLite that refuse an entry or an act whose id is taken.

INSERT OR REPLACE deletes the row that is there without the trigger for deletions, so that any program could alter a
row. PostgreSQL has no such statement.
"""

from django.db import migrations

TABLES = ("tasks_app_auditentry", "tasks_app_act")


def guard(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for table in TABLES:
            schema_editor.execute(_trigger(table), None)


def unguard(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for table in TABLES:
            schema_editor.execute(f"drop trigger {table}_insert", None)


def _trigger(table):
    """Return the statement that makes the trigger. A row is replaced by its key or by its rowid.

    Before an insert that names no rowid, the new one is -1. A row that has this one must not stop all inserts.
    """
    return f"""
create trigger {table}_insert before insert on {table}
when exists (select 1 from {table} where id = new.id and id <> -1)
    or exists (select 1 from {table} where rowid = new.rowid and rowid <> -1)
begin select raise(abort, 'rows of {table} are only added, and this id is taken'); end
"""  # noqa: S608  # the names are constants


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0066_like_indexes_of_new_databases")]
    operations = [migrations.RunPython(guard, unguard, elidable=False)]
