"""The large texts of a task behind its other columns on SQLite, so that small columns are found without reading them."""

from django.db import migrations

from tasks_app.migrations._texts_last import TextsLast


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0027_key_language'),
    ]

    operations = [
        TextsLast(),
    ]
