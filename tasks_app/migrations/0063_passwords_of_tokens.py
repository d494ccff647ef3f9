"""Tokens of operators end with the password that their user had when they were made.

Tokens that exist are bound to the present passwords of their users. A token that a process of the earlier version makes
after this migration is bound to none, and is refused: its operator makes another.
"""

from django.contrib.auth.models import User
from django.db import migrations, models


def bind(apps, schema_editor):
    """Bind the tokens to the present passwords of their users."""
    tokens = apps.get_model("tasks_app", "OperatorToken").objects.filter(revoked_at=None)
    for token in tokens.select_related("user"):
        token.password_digest = User(password=token.user.password).get_session_auth_hash()
        token.save(update_fields=["password_digest"])


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0062_audit_floor"),
    ]

    operations = [
        migrations.AddField(
            model_name="operatortoken",
            name="password_digest",
            field=models.CharField(db_default="", default="", editable=False, max_length=64),
        ),
        migrations.RunPython(bind, migrations.RunPython.noop, elidable=True),
    ]
