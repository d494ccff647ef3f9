"""The secrets and the usage of a task are written in the statement that creates it, and are looked up by the whole key
only. Django gives every text key on PostgreSQL a second index for LIKE, for which each new row would pay.
"""

from django.db import migrations, models

from tasks_app.migrations._like_indexes import DropLikeIndexes


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
        DropLikeIndexes(["runsecret", "usage"]),
    ]
