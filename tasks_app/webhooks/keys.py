"""The end of webhooks whose credential has ended. Revoking a key ends its webhooks at once; those of every other
credential, and of a key that expires, end when a delivery is due.

The owner may register such a webhook again with another credential.
"""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.event_log.moves import set_state
from tasks_app.models import ApiKey, Delivery, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.webhooks.credentials import REVOKED, has_credential, why_ended
from tasks_app.webhooks.leases import end

AT_ONCE = 100
"""Webhooks that are ended in one statement."""
UNSENT = "The credential that registered its webhook has ended before this was delivered."


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


def end_webhooks_without_credential() -> int:
    """Disable due webhooks whose credential is not valid any more. Return their number, AT_ONCE at most."""
    now = clock.shared()
    with transaction.atomic():
        rows = Webhook.objects.filter(~has_credential(now), state=WebhookState.ACTIVE, due_at__lte=now)
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for webhook in rows[:AT_ONCE]:
            by_reason[why_ended(webhook, now)].append(webhook.pk)
        return sum(_end(ids, reason) for reason, ids in by_reason.items())


def reason_of_end(webhook: Webhook, now: datetime) -> str:
    """Return why the credential of the webhook is not valid any more; empty if it is."""
    is_valid = Webhook.objects.filter(has_credential(now), pk=webhook.pk).exists()
    return "" if is_valid else why_ended(webhook, now)


def _end(ids: list[str], reason: str) -> int:
    now, count = clock.shared(), 0
    for place in range(0, len(ids), AT_ONCE):
        some = ids[place : place + AT_ONCE]
        rows = Webhook.objects.filter(pk__in=some)
        count += set_state(rows, WebhookState.DISABLED, reason=reason, due_at=None, updated_at=now)
        end(Delivery.objects.filter(webhook_id__in=some, state=DeliveryState.WAITING), now, error=UNSENT)
    return count
