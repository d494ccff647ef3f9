"""All tables of the migrations up to 0065, for a new database. Those took seconds there, because SQLite copies a whole
table for most of their changes.

A database in which some of them were applied goes on with them. tests/test_squashed_migration.py holds that both ways
lead to the same tables, indexes and triggers.
"""

from importlib import import_module

from django.conf import settings
from django.db import migrations

from tasks_app.migrations._tables import callers, calls, operators, systems, tasks

audit, floor = (import_module(f"tasks_app.migrations.{name}") for name in ("0040_audit", "0062_audit_floor"))
NAMES = """
0001_initial 0002_no_like_indexes 0003_webhooks 0004_wants_and_files 0005_the_caller_left 0006_processes
0007_bodies_from_the_log 0008_attempts 0009_turns 0010_lists 0011_message_seq 0012_wants_default 0013_asked
0014_joined_seq 0015_broken_answers 0016_lookups 0017_peers 0018_acts 0019_wrong_logins 0020_webhook_keys
0021_webhook_indexes 0022_exchange_envelope 0023_webhook_language 0024_delivery_language 0025_direct_replies
0026_fence_and_attempt 0027_key_language 0028_texts_last 0029_plain_words 0030_webhooks_by_name 0031_sizes
0032_relays 0033_socket_tickets 0034_receivers 0035_operators 0036_refusals 0037_budgets 0038_permissions
0039_service_accounts 0040_audit 0041_key_use 0042_oauth_clients 0043_rate_limits 0044_user_links
0045_webhook_credentials 0046_shared_streams 0047_webhook_filter 0048_operator_devices 0049_token_administers
0050_shared_stream_lists 0051_waiting_answers 0052_memory 0053_no_more_like_indexes 0054_slack_questions
0055_zones 0056_process_counters 0057_workflows 0058_batches 0059_operators_lists 0060_secrets_of_tasks
0061_addresses_of_work 0062_audit_floor 0063_passwords_of_tokens 0064_limited_answers 0065_share_of_budgets
"""
"""The migrations that it replaces."""


class Migration(migrations.Migration):

    replaces = [("tasks_app", name) for name in NAMES.split()]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('otp_totp', '0003_add_timestamps'),
    ]

    operations = [
        *callers.CREATE,
        *tasks.CREATE,
        *calls.CREATE,
        *systems.CREATE,
        *operators.CREATE,
        migrations.RunPython(audit.guard, audit.unguard, elidable=False),
        migrations.RunPython(floor.raise_floor, floor.drop_floor, elidable=False),
    ]
