from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0046_shared_streams")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="notices",
            field=models.SmallIntegerField(
                null=True, help_text="The filter of its deliveries, a bit for each notice; null: all events."
            ),
        ),
    ]
