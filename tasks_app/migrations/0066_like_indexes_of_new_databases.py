"""The tables that 0001_squashed_0065 makes lose the indexes that 0002, 0053 and 0060 drop in older databases."""

from django.db import migrations

from tasks_app.migrations._like_indexes import DropLikeIndexes

NAMES = """
task exchange exchangebody act auditentry delivery directreply file idempotencykey pushconfig relayedtask reservation run
turn runsecret usage
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0065_share_of_budgets")]
    operations = [DropLikeIndexes(NAMES.split())]
