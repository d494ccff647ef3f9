from django.db import migrations, models
from django.db.models import Q

from tasks_app.migrations._online import AddIndexOnline, RemoveIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0050_shared_stream_lists")]
    operations = [
        migrations.AddField(
            model_name="agentanswer",
            name="waits_since",
            field=models.DateTimeField(
                null=True,
                help_text="Since when it waits for an earlier answer, a pause or its task; null: it does not wait.",
            ),
        ),
        AddIndexOnline(
            model_name="agentanswer",
            index=models.Index(
                fields=["due_at"],
                name="agent_answer_ready",
                condition=Q(due_at__isnull=False, waits_since__isnull=True),
            ),
        ),
        AddIndexOnline(
            model_name="agentanswer",
            index=models.Index(
                fields=["stream", "agent", "seq"], name="agent_answer_open", condition=Q(due_at__isnull=False)
            ),
        ),
        AddIndexOnline(
            model_name="agentanswer",
            index=models.Index(
                fields=["id"], name="agent_answer_waits", condition=Q(due_at__isnull=False, waits_since__isnull=False)
            ),
        ),
        RemoveIndexOnline(model_name="agentanswer", name="agent_answer_due"),
    ]
