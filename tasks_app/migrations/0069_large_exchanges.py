from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("tasks_app", "0068_names_of_users")]

    operations = [
        AddIndexOnline(
            model_name="exchange",
            index=models.Index(
                condition=models.Q(("request_bytes__gte", 4096)), fields=["caller", "id"], name="exchange_large"
            ),
        ),
    ]
