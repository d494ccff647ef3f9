"""The secrets and the usage of a task are written in the statement that creates it, and are looked up by the whole key
only. Django gives every text key on PostgreSQL a second index for LIKE, for which each new row would pay.
"""

from django.db import migrations, models


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select quote_ident(indexname) from pg_indexes "
            "where schemaname = current_schema() and tablename = any(%s) and indexname like %s",
            [["tasks_app_runsecret", "tasks_app_usage"], r"%\_like"],
        )
        names = cursor.fetchall()
        # Wait for older transactions as long as need be, and let writers go on meanwhile.
        cursor.execute("set lock_timeout = 0")
        for (name,) in names:
            cursor.execute(f"drop index concurrently if exists {name}")
        cursor.execute("reset lock_timeout")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0059_operators_lists")]
    operations = [
        # A help text is nothing to the database.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="runsecret",
                    name="key",
                    field=models.CharField(
                        help_text="A digest of the task and the message.",
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                )
            ]
        ),
        migrations.RunPython(drop, migrations.RunPython.noop, elidable=False),
    ]
