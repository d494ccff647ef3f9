"""The head of a webhook: which of its waiting deliveries is tried next, and when.

A webhook of A2A 1.0 gets every event in order. A body of 0.x is the whole task, so a later body contains all that an
earlier one does. While the task is small, such a webhook gets a body for each change of status. After that it gets only
the newest interim one, with pauses that keep the bytes sent linear in the size of the log.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db.models import OuterRef, Q, QuerySet, Subquery
from msgspec import Struct

from a2a import languages
from tasks_app.event_log import GROWTH
from tasks_app.event_log.moves import set_state
from tasks_app.models import Delivery, Webhook
from tasks_app.models.states import DeliveryState

STEPS_BYTES = 1_048_576
"""Bytes of whole bodies up to which a webhook gets one for each change of status."""
REST_RATE = 4_096
"""The rate that sets the rest after a whole body, in bytes a second. Interim deliveries wait for the end of the rest,
unless the log has grown enough."""
SUPERSEDED = "A later delivery of the webhook says all that this one would have said."


class _Bounds(Struct, frozen=True):
    """The events of a webhook's waiting deliveries, by number."""

    webhook: str
    first: int | None
    firm: int | None
    """The first delivery that must not be left out: it is not interim, or was tried, so its receiver may know it."""
    newest: int | None


def whole(language: str) -> bool:
    """Return whether bodies of the language are whole tasks.

    The answer for a language that this process does not speak is no: deliveries in it go one by one, in order.
    """
    wire = languages.ALL.pushing.get(language)
    return wire is not None and wire.push is not None and wire.push.whole_task


def step_by_step(webhook: Webhook) -> bool:
    """Return whether the webhook still gets a body for each change of status."""
    return webhook.sent_bytes + webhook.body_bytes <= STEPS_BYTES


def heads(webhooks: Sequence[Webhook]) -> dict[str, Delivery]:
    """Return the next delivery to try for each webhook that has one, in two statements.

    The caller has locked the rows of the webhooks, so no delivery is added to them meanwhile.
    """
    bounds = {row.webhook: row for row in _bounds([webhook.pk for webhook in webhooks])}
    targets = {webhook.pk: seq for webhook in webhooks if (seq := _target(webhook, bounds[webhook.pk])) is not None}
    if not targets:
        return {}
    these = reduce(or_, (Q(webhook_id=webhook, seq=seq) for webhook, seq in targets.items()))
    return {row.webhook_id: row for row in Delivery.objects.filter(these)}


def _bounds(ids: Sequence[str]) -> list[_Bounds]:
    waiting = Delivery.objects.filter(webhook_id=OuterRef("pk"), state=DeliveryState.WAITING)
    firm = waiting.filter(Q(interim=False) | Q(attempt__gt=0))
    orders = (waiting.order_by("seq"), firm.order_by("seq"), waiting.order_by("-seq"))
    numbers = [Subquery(rows.values("seq")[:1]) for rows in orders]
    webhooks = Webhook.objects.filter(pk__in=ids)
    webhooks = webhooks.annotate(first=numbers[0], firm=numbers[1], newest=numbers[2])
    return [_Bounds(*row) for row in webhooks.values_list("pk", "first", "firm", "newest")]


def _target(webhook: Webhook, bounds: _Bounds) -> int | None:
    if not whole(webhook.language_name) or step_by_step(webhook):
        return bounds.first
    return bounds.newest if bounds.firm is None else bounds.firm


def supersede(deliveries: Sequence[Delivery], now: datetime) -> None:
    """End the interim deliveries that come before these, the heads of their webhooks, in one statement."""
    before = [Q(webhook_id=head.webhook_id, seq__lt=head.seq) for head in deliveries if whole(head.language_name)]
    if not before:
        return
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING, interim=True, attempt=0)
    set_state(waiting.filter(reduce(or_, before)), DeliveryState.SUPERSEDED, done_at=now, error=SUPERSEDED)


def count_body(webhook: Webhook, size: int, now: datetime, *, is_delivered: bool) -> None:
    """Count the bytes of a body in the webhook's columns. After a whole body, interim deliveries rest."""
    webhook.sent_bytes += size
    if is_delivered and whole(webhook.language_name):
        webhook.body_bytes = size
        webhook.rests_until = None if step_by_step(webhook) else now + timedelta(seconds=size / REST_RATE)


def due_after(webhook: Webhook, waiting: QuerySet[Delivery], again: datetime, *, is_delivered: bool) -> datetime | None:
    """Return the time of the next try, not before `again`; None if no delivery waits."""
    if not whole(webhook.language_name):
        return again if waiting.exists() else None
    # False sorts first, so this is false if any waiting delivery is not interim.
    interim = waiting.order_by("interim").values_list("interim", flat=True).first()
    if interim is None:
        return None
    has_grown = GROWTH * webhook.grown >= webhook.body_bytes
    if not interim or not is_delivered or webhook.rests_until is None or has_grown:
        return again
    return max(again, webhook.rests_until)
