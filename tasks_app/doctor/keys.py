"""Findings about API keys: networks and languages that cannot be read, so that their calls fail or lose their pin."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from tasks_app.callers.access import check_language
from tasks_app.callers.networks import read_networks
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import guard
from tasks_app.doctor.work import MOST
from tasks_app.models import ApiKey


def examine_keys(now: datetime) -> Iterator[Finding]:
    """Yield valid keys whose networks or language no verb would store. `now` is the time by the database's clock."""
    yield from guard(_find(now), "keys")


def _find(now: datetime) -> Iterator[Finding]:
    rows = ApiKey.objects.filter(~Q(networks="") | Q(language__isnull=False), revoked_at=None)
    rows = rows.exclude(expires_at__lte=now).order_by("id").only("id", "name", "prefix", "networks", "language")
    count = 0
    for row in rows.iterator(2_000):
        try:
            read_networks(row.networks)
            check_language(row.language)
        except ValueError as error:
            yield Finding(
                kind="key",
                subject=str(row.pk),
                problem=f"The networks or the language of key {row.pk}, {row}, cannot be read: {error}.",
                remedy=f"Make another key, and revoke this one: manage.py a2a keys revoke {row.pk}. Find out what "
                "wrote to the database.",
            )
            count += 1
        if count == MOST:
            return
