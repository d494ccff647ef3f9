"""The end of webhooks whose key has ended. Revoking a key ends its webhooks at once; after its expiry they end when a
delivery is due.

The owner may register such a webhook again with another key.
"""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.event_log.moves import set_state
from tasks_app.models import ApiKey, Delivery, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.webhooks.leases import end, has_key

AT_ONCE = 100
"""Webhooks that are ended in one statement."""
REVOKED = "the key that registered it was revoked"
EXPIRED = "the key that registered it has expired"
UNSENT = "The key that registered its webhook has ended before this was delivered."


def revoke(key: ApiKey, by: Operator) -> int | None:
    """Revoke a key, disable the webhooks registered with it, and record the act. Return the number of webhooks, or None
    if the key was revoked before."""
    with transaction.atomic():
        if not access.revoke(ApiKey.objects.filter(pk=key.pk)):
            return None
        webhooks = end_webhooks_of([key.pk])
        key.refresh_from_db(fields=["revoked_at"])
        after = {"revoked_at": key.revoked_at, "webhooks": webhooks}
        record_acts(by, "revoke", Change(key, {"revoked_at": None}, after))
    return webhooks


def end_webhooks_of(keys: Collection[int]) -> int:
    """Disable the webhooks of revoked keys, and give up their waiting deliveries. Return the number of webhooks."""
    with transaction.atomic():
        mine = Webhook.objects.filter(key__in=keys, state=WebhookState.ACTIVE)
        return _end(list(mine.order_by("pk").values_list("pk", flat=True)), REVOKED)


def end_webhooks_without_key() -> int:
    """Disable due webhooks whose key has expired, or was revoked by another process. Return their number.

    At most AT_ONCE for each of the two reasons are disabled.
    """
    now = clock.shared()
    with transaction.atomic():
        due = Webhook.objects.filter(state=WebhookState.ACTIVE, due_at__lte=now)
        without_key = due.filter(key__revoked_at__isnull=False)
        past_expiry = due.filter(key__revoked_at=None, key__expires_at__lte=now)
        both = ((without_key, REVOKED), (past_expiry, EXPIRED))
        return sum(_end(list(rows.values_list("pk", flat=True)[:AT_ONCE]), why) for rows, why in both)


def is_without_key(webhook: Webhook, now: datetime) -> bool:
    """Return whether the key of the webhook has ended."""
    return not Webhook.objects.filter(has_key(now), pk=webhook.pk).exists()


def _end(ids: list[str], reason: str) -> int:
    now, count = clock.shared(), 0
    for place in range(0, len(ids), AT_ONCE):
        some = ids[place : place + AT_ONCE]
        rows = Webhook.objects.filter(pk__in=some)
        count += set_state(rows, WebhookState.DISABLED, reason=reason, due_at=None, updated_at=now)
        end(Delivery.objects.filter(webhook_id__in=some, state=DeliveryState.WAITING), now, error=UNSENT)
    return count
