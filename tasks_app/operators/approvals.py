"""The OAuth clients that operators have approved: the end of their codes and tokens.

The tables are found by their names, because they stay in the database while the OAuth server is off. What an approval
gave would be valid again once it is switched on.
"""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

TABLES = ("oauth2_provider_grant", "oauth2_provider_refreshtoken", "oauth2_provider_accesstoken")
"""The tables of django-oauth-toolkit whose rows belong to the operator who approved a client."""
TO_APPROVE = "tasks_app.change_oauthclient"
"""The permission to approve OAuth clients."""


def end_approvals(*users: User) -> None:
    """Delete the codes and tokens of OAuth clients that the users have approved."""
    if not users:
        return
    # Tokens refer to each other, which both databases check at the end of the transaction.
    with transaction.atomic(), connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        tables = [table for table in TABLES if table in present]
        # A request that has locked a refresh token may store its successors while a statement waits for the lock. That
        # statement does not see them, but those of the next round do.
        while sum(_delete(cursor, table, users) for table in tables):
            pass


def end_lost_approvals(*users: User) -> None:
    """End the approvals of those of the users who may approve no OAuth client any more. They would be valid again if
    the permission came back."""
    # Asked of the database, because Django keeps the permissions of a user object once they are read.
    approvers = User.objects.with_perm(TO_APPROVE, backend="django.contrib.auth.backends.ModelBackend")
    ids = set(approvers.values_list("pk", flat=True))
    end_approvals(*(user for user in users if user.pk not in ids))


def _delete(cursor: CursorWrapper, table: str, users: Sequence[User]) -> int:
    marks = ", ".join(["%s"] * len(users))
    cursor.execute(f"delete from {table} where user_id in ({marks})", [user.pk for user in users])  # noqa: S608  # ours
    return int(cursor.rowcount)
