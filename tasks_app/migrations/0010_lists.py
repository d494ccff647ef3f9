from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('tasks_app', '0009_turns'),
    ]

    operations = [
        AddIndexOnline(
            model_name='task',
            index=models.Index(fields=['owner', 'state', '-status_at', 'id'], name='task_by_state'),
        ),
        AddIndexOnline(
            model_name='task',
            index=models.Index(fields=['owner', 'context_id', 'state', '-status_at', 'id'], name='task_by_context'),
        ),
        AddIndexOnline(
            model_name='task',
            index=models.Index(fields=['owner', 'agent', 'state', '-status_at', 'id'], name='task_by_agent'),
        ),
        RemoveIndexOnline(
            model_name='task',
            name='task_newest',
        ),
        RemoveIndexOnline(
            model_name='task',
            name='task_context',
        ),
    ]
