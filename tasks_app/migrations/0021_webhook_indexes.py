from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('tasks_app', '0020_webhook_keys'),
    ]

    operations = [
        AddIndexOnline(
            model_name='pushconfig',
            index=models.Index(condition=models.Q(('key__isnull', False)), fields=['key'], name='push_config_key'),
        ),
        AddIndexOnline(
            model_name='pushconfig',
            index=models.Index(fields=['host', 'id'], name='push_config_host'),
        ),
        AddIndexOnline(
            model_name='pushconfig',
            index=models.Index(condition=models.Q(('address__isnull', True)), fields=['id'], name='push_config_clear'),
        ),
    ]
