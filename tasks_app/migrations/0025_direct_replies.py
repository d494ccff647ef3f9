"""A message and its answer without a task is a direct reply now. Its table and the columns that name it stay as they
are: processes of the version before write to them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0024_delivery_language'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelTable(name='turn', table='tasks_app_turn'),
                migrations.RenameModel(old_name='Turn', new_name='DirectReply'),
            ],
        ),
        migrations.AlterField(
            model_name='file',
            name='holder',
            field=models.CharField(help_text='The task or direct reply it belongs to; empty when that is gone.', max_length=36),
        ),
        migrations.AlterField(
            model_name='idempotencykey',
            name='turn_id',
            field=models.CharField(help_text='The direct reply, for a message without a task.', max_length=36, null=True),
        ),
    ]
