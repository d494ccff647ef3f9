"""Django gives every text key on PostgreSQL a second index for LIKE. Ours are looked up by the whole id only, and the
three tables that grow fastest would pay for it with each row."""

from django.db import migrations

TABLES = ("tasks_app_task", "tasks_app_exchange", "tasks_app_exchangebody")


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select quote_ident(indexname) from pg_indexes "
            "where schemaname = current_schema() and tablename = any(%s) and indexname like %s",
            [list(TABLES), r"%\_like"],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"drop index {name}")


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0001_initial")]
    operations = [migrations.RunPython(drop, migrations.RunPython.noop, elidable=False)]
