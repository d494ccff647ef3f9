from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('tasks_app', '0015_broken_answers'),
    ]

    operations = [
        AddIndexOnline(
            model_name='exchange',
            index=models.Index(condition=models.Q(('outcome', 'result'), _negated=True), fields=['outcome', 'id'], name='exchange_outcome'),
        ),
        AddIndexOnline(
            model_name='task',
            index=models.Index(condition=models.Q(('state', 'completed'), _negated=True), fields=['state', 'id'], name='task_state'),
        ),
        AddIndexOnline(
            model_name='run',
            index=models.Index(condition=models.Q(('reference', ''), _negated=True), fields=['reference'], name='run_reference'),
        ),
        AddIndexOnline(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'delivered'), _negated=True), fields=['state', 'id'], name='delivery_state'),
        ),
    ]
