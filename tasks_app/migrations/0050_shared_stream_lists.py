from django.db import migrations, models

from tasks_app.migrations._online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0049_token_administers")]
    operations = [
        AddIndexOnline(model_name="sharedstream", index=models.Index(fields=["state", "-id"], name="shared_by_state")),
        AddIndexOnline(model_name="sharedstream", index=models.Index(fields=["tenant", "-id"], name="shared_by_tenant")),
    ]
