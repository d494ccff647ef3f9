from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0002_no_like_indexes'),
    ]

    operations = [
        migrations.CreateModel(
            name='File',
            fields=[
                ('id', models.CharField(help_text='The day, which is their folder, and a digest.', max_length=41, primary_key=True, serialize=False)),
                ('holder', models.CharField(help_text='The task or turn it belongs to; empty when that is gone.', max_length=36)),
                ('name', models.CharField(max_length=255)),
                ('media_type', models.CharField(max_length=255)),
                ('size', models.PositiveBigIntegerField()),
                ('digest', models.CharField(help_text='SHA-256 of the bytes.', max_length=64)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['holder'], name='file_holder')],
            },
        ),
        migrations.AddField(
            model_name='task',
            name='wants',
            field=models.TextField(default='', help_text='JSON: media types and extensions wanted with the newest message.'),
        ),
    ]
