"""Django gives every text key on PostgreSQL a second index for LIKE. The rows of calls, runs and webhooks are looked up
by the whole key only, and each new one would pay for it.

0040 was to drop that of the audit, but Django makes such indexes at the end of a migration, after all its operations.
"""

from django.db import migrations

from tasks_app.migrations._like_indexes import DropLikeIndexes

NAMES = "act auditentry delivery directreply file idempotencykey pushconfig relayedtask reservation run turn"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0052_memory")]
    operations = [DropLikeIndexes(NAMES.split())]
