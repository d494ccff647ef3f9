"""The deletion of what has expired: some old rows of a client with each of its new tokens, and all others in sweeps
(upkeep/expired_tokens.py)."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from tasks_app import clock
from tasks_app.models import OAuthClient

BATCH = 20
"""Rows of each table that one new token removes."""
Rows = QuerySet[Grant | RefreshToken | AccessToken]


def forget_expired(client: OAuthClient) -> None:
    """Delete some of the client's expired codes and tokens."""
    for rows in _find_expired():
        _delete(rows.filter(application=client).order_by("pk")[:BATCH])


def forget_next(table: int, place: int, count: int) -> int | None:
    """Delete what has expired among the next rows of a table behind a place, in the order of their ids.

    Return the place behind these rows; None at the end of the table. The tables have no index on the time: without the
    place each look would read them whole.
    """
    rows = _find_expired()[table]
    ids = list(rows.model._default_manager.filter(pk__gt=place).order_by("pk").values_list("pk", flat=True)[:count])
    if ids:
        _delete(rows.filter(pk__gt=place, pk__lte=ids[-1]))
    return ids[-1] if len(ids) == count else None


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


def _delete(rows: Rows) -> None:
    if ids := list(rows.values_list("pk", flat=True)):
        rows.model._default_manager.filter(pk__in=ids).delete()
