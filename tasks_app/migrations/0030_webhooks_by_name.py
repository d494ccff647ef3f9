"""A push config is a webhook now, as everywhere else. Its table, the columns and the indexes keep their names, under
which a process of the version before goes on writing.

The permissions of operators are rows that carry the model's name. They are renamed before Django would create new ones
that no group has.
"""

import django.db.models.deletion
from django.db import migrations, models

FORMER, NAME = "pushconfig", "webhook"
VERBS = ("add", "change", "delete", "view")


def rename_permissions(apps, schema_editor, former=FORMER, name=NAME):
    """Rename the content type of webhooks and its permissions.

    If a process of the other version has created the type and permissions of that name already, the users and groups of
    the former permissions get those too.
    """
    database = schema_editor.connection.alias
    types = apps.get_model("contenttypes", "ContentType").objects.using(database).filter(app_label="tasks_app")
    permissions = apps.get_model("auth", "Permission").objects.using(database)
    if not types.filter(model=name).exists():
        types.filter(model=former).update(model=name)
    target = types.filter(model=name).first()
    if target is None:
        return  # A new database: Django creates both after the last migration.
    for verb in VERBS:
        rows = permissions.filter(content_type__app_label="tasks_app", codename=f"{verb}_{former}")
        existing = permissions.filter(content_type=target, codename=f"{verb}_{name}").first()
        if existing is None:
            rows.update(content_type=target, codename=f"{verb}_{name}")
            continue
        for row in rows:
            existing.group_set.add(*row.group_set.all())
            existing.user_set.add(*row.user_set.all())


def restore_permissions(apps, schema_editor):
    """Give the content type and the permissions their former names."""
    rename_permissions(apps, schema_editor, NAME, FORMER)


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0029_plain_words"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable("pushconfig", "tasks_app_pushconfig"),
                migrations.RemoveConstraint("pushconfig", "push_config_id"),
                migrations.RemoveConstraint("delivery", "delivery_of_event"),
                migrations.RemoveIndex("delivery", "delivery_waiting"),
                migrations.RenameModel("PushConfig", "Webhook"),
                migrations.AlterModelOptions("webhook", {}),
                migrations.RenameField("webhook", "config_id", "name"),
                migrations.AlterField(
                    "webhook",
                    "name",
                    models.CharField(
                        max_length=255, db_column="config_id", help_text="The id that its owner uses; unique in the task."
                    ),
                ),
                migrations.RenameField("delivery", "config", "webhook"),
                migrations.AlterField(
                    "delivery",
                    "webhook",
                    models.ForeignKey(
                        db_column="config_id",
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="tasks_app.webhook",
                    ),
                ),
                migrations.AddConstraint(
                    "webhook", models.UniqueConstraint(fields=["task", "name"], name="push_config_id")
                ),
                migrations.AddConstraint(
                    "delivery", models.UniqueConstraint(fields=["webhook", "seq"], name="delivery_of_event")
                ),
                migrations.AddIndex(
                    "delivery",
                    models.Index(
                        fields=["webhook", "seq"], name="delivery_waiting", condition=models.Q(state="waiting")
                    ),
                ),
            ],
        ),
        migrations.RunPython(rename_permissions, restore_permissions),
    ]
