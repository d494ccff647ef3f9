from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0055_zones")]

    operations = [
        migrations.AddField(
            model_name="process",
            name="counters",
            field=models.TextField(null=True, help_text="JSON: the counters of a process that has no /metrics."),
        ),
    ]
