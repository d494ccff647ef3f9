"""A floor for the deletion of the audit: an age below which retention deletes no entry. No statement deletes acts.

Before, a program that claimed to be retention could delete every row, and TRUNCATE both tables.
"""

from importlib import import_module

from django.db import migrations

former = import_module("tasks_app.migrations.0040_audit")
ENTRIES, ACTS = "tasks_app_auditentry", "tasks_app_act"
# A2A_AUDIT_DAYS is 1 at least. The hour is for ids that are a little older than the time of their row.
FLOOR_HOURS = 23
# The path excludes functions and operators of other schemas, such as a now() that a program has made.
_FUNCTION = f"""
create or replace function tasks_app_append_only() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'DELETE' and tg_table_name = '{ENTRIES}' then
        if current_setting('taskdesk.retention', true) = 'on'
            and old.created_at < now() - interval '{FLOOR_HOURS} hours'
        then
            return old;
        end if;
    end if;
    raise exception 'rows of % are only added, and deleted by retention alone when they are old', tg_table_name;
end $$
"""


def raise_floor(apps, schema_editor):
    """Have the triggers refuse deletions of young entries and of all acts."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_FUNCTION, None)
        return
    is_old = f"old.created_at < datetime('now', '-{FLOOR_HOURS} hours')"
    _replace(schema_editor, ENTRIES, f"case when {is_old} and {former.RETENTION}() then null else {{}} end")
    _replace(schema_editor, ACTS, "{}")


def drop_floor(apps, schema_editor):
    """Have the triggers permit retention every deletion again."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(former._FUNCTION, None)
        schema_editor.execute("alter function tasks_app_append_only() reset all", None)
        return
    for table in (ENTRIES, ACTS):
        _replace(schema_editor, table, f"case when {former.RETENTION}() then null else {{}} end")


def _replace(schema_editor, table, answer):
    """Replace the trigger of SQLite for deletions. The braces in `answer` stand for the refusal."""
    refusal = f"raise(abort, 'rows of {table} are only added, and deleted by retention alone when they are old')"
    schema_editor.execute(f"drop trigger {table}_delete", None)
    schema_editor.execute(
        f"create trigger {table}_delete before delete on {table} begin select {answer.format(refusal)}; end", None
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0061_addresses_of_work"),
    ]

    operations = [
        migrations.RunPython(raise_floor, drop_floor, elidable=False),
    ]
