"""Django gives every text key on PostgreSQL a second index for LIKE. The rows of calls, runs and webhooks are looked up
by the whole key only, and each new one would pay for it.

0040 was to drop that of the audit, but Django makes such indexes at the end of a migration, after all its operations.
"""

from django.db import migrations

NAMES = "act auditentry delivery directreply file idempotencykey pushconfig relayedtask reservation run turn"


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select quote_ident(indexname) from pg_indexes "
            "where schemaname = current_schema() and tablename = any(%s) and indexname like %s",
            [[f"tasks_app_{name}" for name in NAMES.split()], r"%\_like"],
        )
        names = cursor.fetchall()
        # Wait for older transactions as long as need be, and let writers go on meanwhile.
        cursor.execute("set lock_timeout = 0")
        for (name,) in names:
            cursor.execute(f"drop index concurrently if exists {name}")
        cursor.execute("reset lock_timeout")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0052_memory")]
    operations = [migrations.RunPython(drop, migrations.RunPython.noop, elidable=False)]
