from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0002_no_like_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='wants',
            field=models.TextField(default='', help_text='JSON: media types and extensions wanted with the newest message.'),
        ),
    ]
