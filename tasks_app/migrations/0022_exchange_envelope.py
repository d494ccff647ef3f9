"""The languages of calls and deliveries by name, one table a migration: a lock on several at once could wait for calls
that lock the same tables in another order."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0021_webhook_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='exchange',
            name='envelope',
            field=models.CharField(help_text='Around the call and its answer; null: it follows from the door.', max_length=16, null=True),
        ),
    ]
