"""The size of tasks that were stored before they had a column for it, or since by a process of the version before.

A reader takes the size for the most that a task's texts can have, and reads small tasks together. The tasks are examined
in order of their ids, some at a time, while the service runs. Each row is written by itself, so that no writer waits for
more than one. The same again changes nothing, so that it can be cut short and begun again.
"""

from django.db import migrations

BATCH = 500
"""Tasks that are examined at once."""
_LAST = "select max(id) from (select id from tasks_app_task where id > %s order by id limit %s) batch"
# One statement reads both numbers, so that the difference is right whatever is appended after it.
_MISSING = """
    select sum(e.size) - t.size, t.id from tasks_app_task t join tasks_app_event e on e.task_id = t.id
    where t.id > %s and t.id <= %s group by t.id, t.size having sum(e.size) > t.size
"""
_ADD = "update tasks_app_task set size = size + %s where id = %s"


def count_sizes(apps, schema_editor):
    """Add to each task's size what is missing of the characters of its events."""
    with schema_editor.connection.cursor() as cursor:
        after = ""
        while True:
            cursor.execute(_LAST, [after, BATCH])
            last = cursor.fetchone()[0]
            if last is None:
                return
            cursor.execute(_MISSING, [after, last])
            for missing, task_id in cursor.fetchall():
                cursor.execute(_ADD, [missing, task_id])
            after = last


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("tasks_app", "0030_webhooks_by_name")]

    operations = [migrations.RunPython(count_sizes, migrations.RunPython.noop, elidable=True)]
