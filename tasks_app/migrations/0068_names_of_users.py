"""No two users have one name in different letters, capital or small.

Operators look for such a name before they make a user, but two of them at once would both find none. Users who have one
name already keep it: the index begins behind them.
"""

from collections import defaultdict

from django.db import migrations

NAME = "tasks_app_user_name"


def add(apps, schema_editor):
    """Add the index. `upper` is how Django compares names without their case, on each database."""
    users = defaultdict(list)
    for pk, name in apps.get_model("auth", "User").objects.values_list("pk", "username"):
        users[name.upper()].append(pk)
    last = max((pk for namesakes in users.values() if len(namesakes) > 1 for pk in namesakes), default=0)
    schema_editor.execute(f"create unique index {NAME} on auth_user (upper(username)) where id > {last:d}", None)


def remove(apps, schema_editor):
    """Remove the index."""
    schema_editor.execute(f"drop index {NAME}", None)


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0067_audit_ids"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(add, remove, elidable=False)]
