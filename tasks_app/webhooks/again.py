"""Sending deliveries again, in the order of their events.

An operator chooses deliveries in any order, and a sender takes the oldest one that waits. So one transaction sets all
chosen deliveries waiting and makes their webhooks due: no sender sees a part of the selection.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from django.db import transaction
from msgspec import Struct

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.moves import set_state
from tasks_app.hints import DueRows, hints
from tasks_app.models import Delivery, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.operators.audit import Operator, record_acts, state_changes
from tasks_app.webhooks.heads import heads
from tasks_app.webhooks.leases import lock_webhooks


class Answer(Struct, frozen=True):
    """The outcome of an act on one row."""

    refusal: str = ""
    """Why the act was not done; empty if it was."""
    note: str = ""
    """A remark for the operator about an act that was done."""


def send_again(ids: Sequence[str], by: Operator) -> dict[str, Answer]:
    """Set deliveries waiting again; each webhook gets its own in the order of events. Return an answer for each id."""
    answers = bridge.do(Do(partial(_send_again, list(dict.fromkeys(ids)), by)))
    hints.due(DueRows.DELIVERIES)
    return answers


def no_delivery(delivery_id: str) -> str:
    """Return the refusal of an act on a delivery that does not exist."""
    return (
        f"There is no delivery {delivery_id[:64]!r}, or it is no longer kept: "
        "`manage.py deliveries list` prints their ids."
    )


def _send_again(ids: Sequence[str], by: Operator) -> dict[str, Answer]:
    with transaction.atomic():
        # PostgreSQL raises an error for a text with U+0000.
        deliveries = Delivery.objects.filter(pk__in=[id for id in ids if "\0" not in id])
        rows = {row.pk: row for row in deliveries.defer("body")}
        webhook_of = {row.pk: row.webhook_id for row in rows.values()}
        webhooks = lock_webhooks(webhook_of.values())
        refusals = {id: _refusal(id, webhook_of, webhooks) for id in ids}
        selection = [id for id, refusal in refusals.items() if not refusal]
        # The operator wants these very deliveries, so no later one may supersede them: they are not interim any more.
        set_state(Delivery.objects.filter(pk__in=selection), DeliveryState.WAITING, done_at=None, interim=False)
        states = {id: rows[id].state for id in selection}
        record_acts(by, "send again", *state_changes((rows[id] for id in selection), states, DeliveryState.WAITING))
        notes = _make_due(selection, {id: webhooks[webhook_of[id]] for id in selection})
    return {id: Answer(refusal=refusal, note=notes.get(id, "")) for id, refusal in refusals.items()}


def _refusal(id: str, webhook_of: Mapping[str, str], webhooks: Mapping[str, Webhook]) -> str:
    if id not in webhook_of:
        return no_delivery(id)
    webhook = webhooks.get(webhook_of[id])
    if webhook is None:
        return "Its webhook is no longer kept."
    if webhook.state != WebhookState.ACTIVE:
        return f"Its webhook is {webhook.state}: {webhook.reason or 'nothing is sent to it'}."
    return ""


def _make_due(selection: Iterable[str], webhook_of: Mapping[str, Webhook]) -> dict[str, str]:
    """Make webhooks due now if their first waiting delivery was chosen; return a note for each delivery that must wait.

    If another delivery comes first, it keeps the time of its next try, which its receiver may have asked for.
    """
    webhooks = {webhook.pk: webhook for webhook in webhook_of.values()}
    first, now = heads(list(webhooks.values())), clock.shared()
    ready = {pk for pk, webhook in webhooks.items() if first[pk].pk in webhook_of or webhook.due_at is None}
    Webhook.objects.filter(pk__in=ready).update(due_at=now)
    return {
        id: f"It waits behind the delivery of event {first[webhook.pk].seq}, which is tried next at "
        f"{webhook.due_at:%Y-%m-%d %H:%M:%S} UTC: send that one again, and it is tried now."
        for id in selection
        if (webhook := webhook_of[id]).pk not in ready
    }
