"""Pauses between two attempts of an agent, or two tries of a delivery, after the database's clock was set back."""

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from a2a.states import RUNNABLE
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.models import Delivery, Task, Webhook
from tasks_app.models.states import DeliveryState, WebhookState

log = logging.getLogger(__name__)
BATCH = 1_000
"""Tasks, and webhooks, whose pauses one sweep begins again."""


def restart_pauses() -> int:
    """Let each pause that began in the future begin now, and return their number.

    Otherwise the pause of a task or a webhook would be longer by the time by which the clock was set back, such as a
    day. A pause that ends before its beginning was begun again already, by another process.
    """
    count = 0
    for what, restart in (("tasks", _restart_tasks), ("webhooks", _restart_webhooks)):
        if number := bridge.do(DoApart(restart), patience=0):
            log.warning("the clock was set back: the pauses of %d %s begin again", number, what)
        count += number
    return count


def _restart_tasks() -> int:
    now = clock.shared()
    ahead = now + timedelta(seconds=clock.APART)
    runnable = Task.objects.filter(state__in=[state.value for state in RUNNABLE], not_before__gt=now)
    paused = runnable.filter(status_at__gt=ahead, not_before__gte=F("status_at"))
    with transaction.atomic():
        rows = paused.select_for_update(skip_locked=True).values_list("id", "not_before", "status_at")[:BATCH]
        for task_id, end, start in rows:
            Task.objects.filter(pk=task_id).update(not_before=now + ((end or start) - start))
    return len(rows)


def _restart_webhooks() -> int:
    """Let the pauses of webhooks begin now. A webhook whose deliveries were not tried yet is due at once."""
    now = clock.shared()
    ahead = now + timedelta(seconds=clock.APART)
    later = Delivery.objects.filter(webhook_id=OuterRef("pk"), state=DeliveryState.WAITING, created_at__gt=ahead)
    retry, first_try = Q(updated_at__gt=ahead, due_at__gte=F("updated_at")), Q(Exists(later), updated_at__lte=ahead)
    paused = Webhook.objects.filter(retry | first_try, state=WebhookState.ACTIVE, due_at__gt=now)
    with transaction.atomic():
        rows = paused.select_for_update(skip_locked=True).values_list("id", "due_at", "updated_at")[:BATCH]
        for webhook_id, end, start in rows:
            pause = (end or start) - start if start > ahead else timedelta()
            Webhook.objects.filter(pk=webhook_id).update(due_at=now + pause)
    return len(rows)
