"""The deletion of expired codes and tokens, in steps of the sweep (upkeep/expired_tokens.py)."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from tasks_app import clock

Rows = QuerySet[Grant | RefreshToken | AccessToken]


def forget_next(table: int, place: int, count: int) -> tuple[int | None, int]:
    """Delete what has expired among the next rows of a table behind a place, in the order of their ids.

    Return the place behind these rows, or None at the end of the table; and the number of deleted rows. The tables have
    no index on the time: without the place each look would read them whole.
    """
    rows = _find_expired()[table]
    ids = list(rows.model._default_manager.filter(pk__gt=place).order_by("pk").values_list("pk", flat=True)[:count])
    expired = list(rows.filter(pk__gt=place, pk__lte=ids[-1]).values_list("pk", flat=True)) if ids else []
    if expired:
        rows.model._default_manager.filter(pk__in=expired).delete()
    return ids[-1] if len(ids) == count else None, len(expired)


def _find_expired() -> list[Rows]:
    """Return the expired rows of each table. Those of access tokens come last, because refresh tokens refer to them.

    A used refresh token is kept for as long as it could have been valid, because a second use must still be noticed.
    One that has lost its access token is refused as it is.
    """
    now = clock.now()
    before = now - timedelta(days=settings.A2A_OAUTH_REFRESH_DAYS)
    is_over = Q(access_token__expires__lt=before) | Q(access_token=None)
    return [
        Grant.objects.filter(expires__lt=now),
        RefreshToken.objects.filter(Q(revoked__lt=before) | Q(is_over, revoked=None)),
        AccessToken.objects.filter(expires__lt=now, refresh_token=None),
    ]
