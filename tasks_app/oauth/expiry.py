"""The deletion of what has expired. Each new token of a client removes some of its old ones, so no sweep is needed."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from tasks_app import clock
from tasks_app.models import OAuthClient

BATCH = 20
"""Rows of each table that one new token removes."""


def forget_expired(client: OAuthClient) -> None:
    """Delete some of the client's expired codes and tokens.

    A used refresh token is kept for as long as it could have been valid, because a second use must still be noticed.
    """
    now = clock.now()
    before = now - timedelta(days=settings.A2A_OAUTH_REFRESH_DAYS)
    ended = Q(revoked__lt=before) | Q(revoked=None, access_token__expires__lt=before)
    _delete(Grant.objects.filter(application=client, expires__lt=now))
    _delete(RefreshToken.objects.filter(ended, application=client))
    _delete(AccessToken.objects.filter(application=client, expires__lt=now, refresh_token=None))


def _delete(rows: "QuerySet[Grant | RefreshToken | AccessToken]") -> None:
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
    if ids:
        rows.model._default_manager.filter(pk__in=ids).delete()
