"""Findings about sealed secrets that cannot be opened, because they were sealed under another SECRET_KEY."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import guard
from tasks_app.models import OperatorDevice, SlackWorkspace, Webhook
from tasks_app.models.states import WebhookState
from tasks_app.relays import acts
from tasks_app.sealing import is_readable

MOST = 200
"""Secrets of one kind that are tried."""


def examine_secrets(_now: datetime) -> Iterator[Finding]:
    """Yield a finding for each kind of secret of which some cannot be opened."""
    webhooks = Webhook.objects.filter(~Q(secret=""), state=WebhookState.ACTIVE, due_at__isnull=False)
    workspaces = SlackWorkspace.objects.filter(disabled_at=None)
    yield from guard(_find("webhooks with waiting deliveries", webhooks.order_by("due_at"), "secret"), "webhooks")
    yield from guard(
        _find("operators' second factors", OperatorDevice.objects.order_by("-pk"), "sealed_key"), "devices"
    )
    yield from guard(_find("workspaces of Slack", workspaces.order_by("-pk"), "bot_token"), "workspaces")
    relays = acts.rows().exclude(credentials="")
    yield from guard(_find("relays", relays.order_by("pk"), "credentials"), "relays")


def _find(name: str, rows: QuerySet[Any], column: str) -> Iterator[Finding]:
    texts = list(rows.values_list(column, flat=True)[:MOST])
    if count := sum(not is_readable(text) for text in texts):
        yield Finding(
            kind="secret",
            subject=name,
            problem=f"Secrets of {name}: {count} of {len(texts)} cannot be opened, because they were sealed under "
            "another SECRET_KEY.",
            remedy="Set SECRET_KEY to that one, or add it to SECRET_KEY_FALLBACKS, for all processes. Until then API "
            "keys that were made under it are not recognised.",
        )
