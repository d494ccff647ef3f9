"""The acts of operators on webhooks and deliveries, for the admin and the commands."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import DatabaseError, InterfaceError, transaction

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log import MakeBody, body_of
from tasks_app.event_log.moves import set_state
from tasks_app.hints import DueRows, hints
from tasks_app.models import Delivery, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.operators.audit import Change, Operator, record_acts, state_changes
from tasks_app.operators.refusals import ActRefused
from tasks_app.sealing import Unreadable, unseal
from tasks_app.webhooks.again import Answer, no_delivery
from tasks_app.webhooks.keys import reason_of_end
from tasks_app.webhooks.leases import end, lock_webhook
from tasks_app.webhooks.posting import with_files

log = logging.getLogger(__name__)


def one_by_one(act: Callable[[str, Operator], None]) -> Callable[[Sequence[str], Operator], dict[str, Answer]]:
    """Turn an act on one row into an act on many rows. It returns an answer for each id; a refusal stops no other."""

    def answer(id: str, by: Operator) -> Answer:
        try:
            act(id, by)
        except ActRefused as refused:
            return Answer(refusal=str(refused))
        return Answer()

    return lambda ids, by: {id: answer(id, by) for id in dict.fromkeys(ids)}


def give_up(delivery_id: str, by: Operator) -> None:
    """Give up a waiting delivery, so that the next one of its webhook is tried. Raises ActRefused."""
    bridge.do(Do(partial(_act_under_lock, _give_up, delivery_id, by)))
    hints.due(DueRows.DELIVERIES)


def disable(webhook_id: str, by: Operator) -> None:
    """Disable a webhook until its owner registers it again or an operator enables it. Raises ActRefused."""
    bridge.do(Do(partial(_disable, webhook_id, by)))


def enable(webhook_id: str, by: Operator) -> None:
    """Enable a disabled webhook, for events from now on. Raises ActRefused."""
    bridge.do(Do(partial(_enable, webhook_id, by)))


def secret_of(webhook_id: str, by: Operator) -> str:
    """Return the secret that signs a webhook's deliveries, and record that the operator saw it. Raises ActRefused."""
    webhook = Webhook.objects.filter(pk=webhook_id).first()
    if webhook is None or not webhook.secret:
        raise _no_webhook(webhook_id)
    try:
        secret = unseal(webhook.secret)
    except Unreadable:
        raise ActRefused(
            "Its secret was sealed under a former SECRET_KEY: add that one to SECRET_KEY_FALLBACKS."
        ) from None
    bridge.do(Do(partial(record_acts, by, "show secret", Change(webhook))))
    return secret


def readable_body(row: Delivery, base: str | None = None) -> str:
    """Return the body as it is sent, with links to its files; empty if it cannot be made from the log."""
    if row.body is not None:
        return with_files(row.body, base)
    try:
        notices = Webhook.objects.filter(pk=row.webhook_id).values_list("notices", flat=True).first()
        body = body_of(MakeBody(task_id=row.task_id, seq=row.seq, language=row.language_name, notices=notices))
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        log.exception("the body of delivery %s cannot be made", row.pk)
        body = None
    return with_files((body or b"").decode(), base)


def oldest_due(patience: timedelta) -> datetime | None:
    """Return the time at which the oldest due delivery became due, if that is longer ago than `patience`."""
    late = Webhook.objects.filter(state=WebhookState.ACTIVE, due_at__lt=clock.shared() - patience).order_by("due_at")
    return late.values_list("due_at", flat=True).first()


def _act_under_lock(act: Callable[[Delivery, Webhook, Operator], None], delivery_id: str, by: Operator) -> None:
    """Run an act under the lock of the webhook, which a sender takes to record the result of a try."""
    with transaction.atomic():
        delivery = Delivery.objects.filter(pk=delivery_id).first()
        if delivery is None:
            raise ActRefused(no_delivery(delivery_id))
        webhook = lock_webhook(delivery.webhook_id)
        if webhook is None:
            raise ActRefused("Its webhook is no longer kept.")
        act(delivery, webhook, by)


def _give_up(delivery: Delivery, webhook: Webhook, by: Operator) -> None:
    if delivery.state != DeliveryState.WAITING:
        raise ActRefused(f"It is {delivery.state} already.")
    now = clock.shared()
    waiting = Delivery.objects.filter(webhook_id=webhook.pk, state=DeliveryState.WAITING).order_by("seq")
    head = waiting.values_list("pk", flat=True).first()
    end(waiting.filter(pk=delivery.pk), now, error=delivery.error or "An operator gave it up.")
    record_acts(by, "give up", *state_changes([delivery], {delivery.pk: DeliveryState.WAITING}, DeliveryState.DEAD))
    # If another delivery came before this one, that one keeps the time of its next try.
    if webhook.state == WebhookState.ACTIVE and head == delivery.pk:
        Webhook.objects.filter(pk=webhook.pk).update(due_at=now if waiting.exists() else None)


def _disable(webhook_id: str, by: Operator) -> None:
    now = clock.now()
    with transaction.atomic():
        lock_webhook(webhook_id)
        mine, reason = Webhook.objects.filter(pk=webhook_id), f"disabled by {by.name}"[:255]
        if not set_state(mine, WebhookState.DISABLED, reason=reason, due_at=None, updated_at=now):
            raise _other_state(webhook_id, WebhookState.ACTIVE)
        waiting = Delivery.objects.filter(webhook_id=webhook_id, state=DeliveryState.WAITING)
        end(waiting, now, error="The webhook was disabled before this was delivered.")
        _record("disable", webhook_id, by, WebhookState.ACTIVE, WebhookState.DISABLED)


def _enable(webhook_id: str, by: Operator) -> None:
    with transaction.atomic():
        webhook = lock_webhook(webhook_id)
        is_disabled = webhook is not None and webhook.state == WebhookState.DISABLED
        if webhook and is_disabled and (reason := reason_of_end(webhook, clock.shared())):
            raise ActRefused(f"Nothing is sent to it, because {reason}: its owner can register it again.")
        mine = Webhook.objects.filter(pk=webhook_id, state=WebhookState.DISABLED)
        if not set_state(mine, WebhookState.ACTIVE, reason="", updated_at=clock.now()):
            raise _other_state(webhook_id, WebhookState.DISABLED)
        _record("enable", webhook_id, by, WebhookState.DISABLED, WebhookState.ACTIVE)


def _record(verb: str, webhook_id: str, by: Operator, before: str, after: str) -> None:
    record_acts(by, verb, *state_changes([Webhook.objects.get(pk=webhook_id)], {webhook_id: before}, after))


def _other_state(webhook_id: str, need: str) -> ActRefused:
    state = Webhook.objects.filter(pk=webhook_id).values_list("state", flat=True).first()
    return ActRefused(f"It is {state}, not {need}.") if state else _no_webhook(webhook_id)


def _no_webhook(webhook_id: str) -> ActRefused:
    return ActRefused(
        f"There is no webhook {webhook_id[:64]!r}, or it was removed. Use the webhook_id that "
        "`manage.py deliveries webhooks` prints, not the id that its owner gave it."
    )
