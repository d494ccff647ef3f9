"""The making of API keys by operators, with its act. webhooks/keys.py revokes them, because that ends webhooks too."""

from datetime import timedelta

from django.db import transaction

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.models import ApiKey
from tasks_app.operators.audit import Change, Operator, record_acts

MOST_DAYS = 36_500


def make_key(
    by: Operator,
    principal: str,
    *,
    tenant: str = "default",
    name: str = "",
    scopes: str = "*",
    language: str | None = None,
    days: float | None = None,
) -> tuple[ApiKey, str]:
    """Make a key and record the act. Return its row and the key, which cannot be read again. Raises ValueError."""
    if days is not None and not 0 < days < MOST_DAYS:
        raise ValueError(f"days must be more than 0 and less than {MOST_DAYS:,}")
    if (principal, name) == (access.DEVELOPER, access.DEVELOPMENT):
        raise ValueError(
            f"`manage.py run` creates keys of {access.DEVELOPER} named {access.DEVELOPMENT}: choose another name"
        )
    with transaction.atomic():  # no key is created without its act
        key = access.new_key(
            principal,
            tenant=tenant,
            name=name,
            scopes=scopes,
            language=language,
            expires_at=None if days is None else clock.now() + timedelta(days=days),
        )
        row = ApiKey.objects.select_related("principal__tenant").get(digest=access.digests(key)[0])
        after = {"scopes": row.scopes, "expires_at": row.expires_at, "language": row.language}
        record_acts(by, "make", Change(row, {}, after))
    return row, key
