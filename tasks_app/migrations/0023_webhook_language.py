"""The languages of calls and deliveries by name, one table a migration: a lock on several at once could wait for calls
that lock the same tables in another order."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0022_exchange_envelope'),
    ]

    operations = [
        migrations.AddField(
            model_name='pushconfig',
            name='language',
            field=models.CharField(help_text='The language of its deliveries; null: it follows from the version.', max_length=32, null=True),
        ),
        migrations.AlterField(
            model_name='pushconfig',
            name='version',
            field=models.CharField(help_text='The A2A version of its deliveries; empty in another language.', max_length=8),
        ),
    ]
