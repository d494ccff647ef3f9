"""The language that a key is pinned to. Null is no pin, so keys of the version before stay as they are."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0026_fence_and_attempt'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='language',
            field=models.CharField(blank=True, help_text='The language of calls that name no version, if it has their method; null: the method decides.', max_length=32, null=True),
        ),
    ]
