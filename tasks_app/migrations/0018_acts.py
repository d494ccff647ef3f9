from typing import Any

import orjson
from django.db import migrations, models

COMMAND = " By command."
KINDS = {"pushconfig": "webhook", "apikey": "API key"}
FLAGS = {1: "add", 2: "change", 3: "delete"}
GROUP = 1_000


def take_over(apps: Any, schema_editor: Any) -> None:
    """Copy the log of Django's admin, whose rows go with their users, to the table that is kept."""
    Act, LogEntry = apps.get_model("tasks_app", "Act"), apps.get_model("admin", "LogEntry")
    entries = LogEntry.objects.select_related("user", "content_type").order_by("action_time", "pk")
    rows = []
    for entry in entries.iterator(GROUP):
        rows.append(Act(**act_of(entry)))
        if len(rows) == GROUP:
            Act.objects.bulk_create(rows)
            rows = []
    Act.objects.bulk_create(rows)


def act_of(entry: Any) -> dict[str, Any]:
    message, model = entry.change_message, entry.content_type.model if entry.content_type else ""
    structured = message.startswith("[")
    sentence = message.removesuffix(COMMAND).rstrip(".").lower()
    return {
        "at": entry.action_time, "operator": entry.user.username[:150],
        "door": "command" if message.endswith(COMMAND) else "admin",
        "verb": (FLAGS.get(entry.action_flag, "change") if structured or not sentence else sentence)[:64],
        "kind": KINDS.get(model, model)[:32], "object_id": (entry.object_id or "")[:64],
        "name": entry.object_repr[:255],
        "after": orjson.dumps({"changes": message}).decode() if structured else "{}",
    }


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0017_peers'),
        ('admin', '0003_logentry_add_action_flag_choices'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.CreateModel(
            name='Act',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('operator', models.CharField(help_text='The name, not the user: it stays when the user goes.', max_length=150)),
                ('door', models.CharField(help_text='admin or command.', max_length=16)),
                ('verb', models.CharField(max_length=64)),
                ('kind', models.CharField(help_text='What the act was on: task, delivery, webhook, API key, user.', max_length=32)),
                ('object_id', models.CharField(max_length=64)),
                ('name', models.CharField(help_text='The row as people call it.', max_length=255)),
                ('before', models.TextField(db_default='{}', default='{}', help_text='JSON: what was changed, as it was.')),
                ('after', models.TextField(db_default='{}', default='{}', help_text='JSON: what was changed, as it became.')),
                ('reason', models.CharField(db_default='', default='', help_text='As the operator gave it.', max_length=255)),
            ],
            options={
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['kind', 'object_id', 'id'], name='act_of_row'), models.Index(fields=['operator', 'id'], name='act_of_operator')],
            },
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
