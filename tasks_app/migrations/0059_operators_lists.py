from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0058_batches")]
    operations = [
        AddIndexOnline("batch", models.Index(fields=["owner", "-id"], name="batch_by_owner")),
        AddIndexOnline("memoryentry", models.Index(fields=["key", "-id"], name="memory_by_key")),
        AddIndexOnline("usage", models.Index(fields=["correlation_id", "-id"], name="usage_by_correlation_id")),
        AddIndexOnline("usage", models.Index(fields=["channel", "-id"], name="usage_by_channel_id")),
        AddIndexOnline("usage", models.Index(fields=["tenant", "-id"], name="usage_by_tenant")),
        RemoveIndexOnline("usage", "usage_by_correlation"),
        RemoveIndexOnline("usage", "usage_by_channel"),
    ]
