from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('tasks_app', '0008_attempts'),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='size',
            field=models.BigIntegerField(db_default=0, default=0, help_text='Characters of the payloads of its events.'),
        ),
        migrations.AddField(
            model_name='task',
            name='messages',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Messages of its caller.'),
        ),
        AddIndexOnline(
            model_name='task',
            index=models.Index(condition=models.Q(('state', 'submitted')), fields=['queue', 'agent', 'owner', '-priority', 'created_at', 'not_before'], name='task_turn'),
        ),
        AddIndexOnline(
            model_name='task',
            index=models.Index(condition=models.Q(('state', 'working')), fields=['agent', 'owner', 'created_at'], name='task_working'),
        ),
        RemoveIndexOnline(
            model_name='task',
            name='task_runnable',
        ),
    ]
