"""The words of the glossary for two numbers: the fence of a claim, and the attempt that is counted.

The columns keep their names, under which a process of the version before goes on writing. Only the names of the fields
change, so there is nothing to do in the database.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0025_direct_replies"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("task", "attempt", "fence"),
                migrations.RenameField("task", "tries", "attempt"),
                migrations.RenameField("event", "attempt", "fence"),
                migrations.RenameField("run", "number", "fence"),
                migrations.RenameField("delivery", "tries", "attempt"),
                migrations.RenameField("deliverytry", "number", "attempt"),
                migrations.AlterField(
                    "task",
                    "fence",
                    models.PositiveIntegerField(
                        db_column="attempt",
                        default=0,
                        help_text="The number of its newest claim: writes under another are refused.",
                    ),
                ),
                migrations.AlterField(
                    "task",
                    "attempt",
                    models.PositiveSmallIntegerField(
                        db_column="tries",
                        default=0,
                        help_text="How many times its agent was called for the newest message.",
                    ),
                ),
                migrations.AlterField(
                    "event",
                    "fence",
                    models.PositiveIntegerField(
                        db_column="attempt",
                        default=0,
                        help_text="The fence of the run that wrote it; 0 where no run did.",
                    ),
                ),
                migrations.AlterField(
                    "run",
                    "fence",
                    models.PositiveIntegerField(db_column="number", help_text="The fence that its claim gave it."),
                ),
                migrations.AlterField(
                    "delivery",
                    "attempt",
                    models.PositiveIntegerField(db_column="tries", default=0, help_text="How many times it was tried."),
                ),
                migrations.AlterField(
                    "deliverytry",
                    "attempt",
                    models.PositiveIntegerField(db_column="number", help_text="Counted from 1."),
                ),
            ],
        ),
    ]
