"""The OAuth clients that operators have approved: the end of their codes and tokens.

The tables are found by their names, because they stay in the database while the OAuth server is off. What an approval
gave would be valid again once it is switched on.
"""

from django.contrib.auth.models import User
from django.db import connection, transaction

TABLES = ("oauth2_provider_grant", "oauth2_provider_refreshtoken", "oauth2_provider_accesstoken")
"""The tables of django-oauth-toolkit whose rows belong to the operator who approved a client."""


def end_approvals(user: User) -> None:
    """Delete the codes and tokens of OAuth clients that the user has approved."""
    # Tokens refer to each other, which both databases check at the end of the transaction.
    with transaction.atomic(), connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for table in TABLES:
            if table in present:
                cursor.execute(f"delete from {table} where user_id = %s", (user.pk,))  # noqa: S608  # our own name
