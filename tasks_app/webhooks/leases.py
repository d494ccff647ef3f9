"""Leases of deliveries: a sender leases a webhook for one try of its next delivery, and records the result.

All of this runs in transactions of the write lane. Leases and due times are by the database's clock, which all senders
share.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value, When
from msgspec import Struct

from a2a import languages
from tasks_app import clock
from tasks_app.event_log.moves import move, set_state
from tasks_app.models import Delivery, DeliveryTry, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.models.webhooks import is_in
from tasks_app.webhooks.credentials import has_credential
from tasks_app.webhooks.heads import count_body, due_after, heads, supersede
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import Decision, TryResult, decide, next_try

LEASE = timedelta(seconds=20)
"""The length of a lease. It is longer than a try may take, so that a sender whose lease is over has ended."""
UNSPOKEN = timedelta(seconds=10)
"""The pause of a webhook whose next delivery is in a language that this process does not speak."""
UNSPOKEN_REASON = "held back: its next delivery is in a language that not every process speaks"
"""The reason for that pause, for operators."""
COLUMNS = (
    "lease_owner",
    "lease_until",
    "state",
    "reason",
    "due_at",
    "updated_at",
    "rests_until",
    "body_bytes",
    "sent_bytes",
)
"""Columns of a webhook that the end of a try may change."""


class DeliveryLease(Struct, frozen=True, kw_only=True):
    """A lease of a webhook, with all that one try of its next delivery needs."""

    webhook: str
    owner_id: int
    holder: str
    until: datetime
    """The end of the lease, by the clock of this machine."""
    delivery: str
    task_id: str
    seq: int
    language: str
    notices: int | None
    body: str | None
    """The stored body, in rows of an earlier version. None: the body is made from the log."""
    attempt: int
    url: str
    address: str | None
    host: str
    schemes: str
    token: str
    credentials: str
    secret: str
    updated_at: datetime
    """The `updated_at` of the webhook when it was leased. If it has changed since, the webhook was registered again."""


def due(now: datetime, busy: Busy) -> QuerySet[Webhook]:
    """Return the webhooks that are due and within all limits, longest due first. Those in a language that this process
    does not speak wait for a process that does."""
    free, is_spoken = Q(lease_until=None) | Q(lease_until__lt=now), is_in(languages.ALL.pushing)
    rows = Webhook.objects.filter(free, is_spoken, has_credential(now), state=WebhookState.ACTIVE, due_at__lte=now)
    rows = rows.order_by("due_at")
    pairs, hosts, owners = busy.full()
    if hosts:
        rows = rows.exclude(host__in=hosts)
    if owners:
        rows = rows.exclude(task__owner_id__in=owners)
    for owner_id, host in pairs:
        rows = rows.exclude(task__owner_id=owner_id, host=host)
    return rows


def take(worker: str, limit: int, busy: Busy) -> list[DeliveryLease]:
    """Lease due webhooks up to the limit, and count them in `busy`.

    No other sender gets them until they are settled or the lease is over. The number of statements does not depend on
    the number of webhooks.
    """
    # Read this machine's clock before the database's, so that the lease here never ends after the one in the row.
    holder, until = f"{worker[:48]}:{token_hex(6)}", clock.now() + LEASE
    with transaction.atomic():
        now = clock.shared()
        rows = due(now, busy).annotate(owner_id=F("task__owner_id"))
        if pauses := busy.volumes.waits(clock.now()) if busy.volumes else {}:
            # Their webhooks are looked at apart: thousands of them that are due would keep all others from being found.
            owners: list[Any] = list(pauses)
            late, rows = rows.filter(task__owner_id__in=owners), rows.exclude(task__owner_id__in=owners)
            times = {row.pk: now + timedelta(seconds=pauses[row.owner_id]) for row in _lock(late, limit)}
            _hold_back(times, byte_limit_reason())
        webhooks = _lock(rows, limit)
        deliveries = heads(webhooks)
        leases: list[DeliveryLease] = []
        elsewhere = [pk for pk, head in deliveries.items() if head.language_name not in languages.ALL.pushing]
        for webhook in webhooks:
            if webhook.pk not in deliveries or webhook.pk in elsewhere:
                continue
            if busy.has_room(webhook.owner_id, webhook.host):
                leases.append(_lease_of(webhook, webhook.owner_id, deliveries[webhook.pk], holder, until))
                busy.add(leases[-1])
        _hold_back(dict.fromkeys(elsewhere, now + UNSPOKEN), UNSPOKEN_REASON)
        _write(leases, [webhook.pk for webhook in webhooks if webhook.pk not in deliveries], holder, now)
        supersede([deliveries[lease.webhook] for lease in leases], now)
    return leases


def _lock(rows: QuerySet[Any], limit: int) -> list[Any]:
    """Lock webhooks up to the limit, without those that another transaction has locked. Each has its owner."""
    return list(rows.select_for_update(of=("self",), skip_locked=True, no_key=True)[:limit])


def _write(leases: list[DeliveryLease], idle: list[str], holder: str, now: datetime) -> None:
    """Write the leases. Webhooks without a waiting delivery are no longer due."""
    if idle:
        Webhook.objects.filter(pk__in=idle).update(due_at=None, reason="")
    if leases:
        # The next body is of the task as of now, so the growth of the log counts from here.
        Webhook.objects.filter(pk__in=[lease.webhook for lease in leases]).update(
            lease_owner=holder, lease_until=now + LEASE, grown=0, reason=""
        )


def _hold_back(times: dict[str, datetime], reason: str) -> None:
    """Make webhooks due at later times."""
    if times:
        later = Case(*(When(pk=pk, then=Value(at)) for pk, at in times.items()), output_field=DateTimeField())
        Webhook.objects.filter(pk__in=times).update(due_at=later, reason=reason)


def byte_limit_reason() -> str:
    """Return the reason, for operators, why a webhook waits for the next minute."""
    return f"held back: its owner has had more than {settings.A2A_OWNER_DELIVERY_BYTES} bytes sent in a minute"


def _lease_of(webhook: Webhook, owner_id: int, head: Delivery, holder: str, until: datetime) -> DeliveryLease:
    return DeliveryLease(
        webhook=webhook.pk,
        owner_id=owner_id,
        holder=holder,
        until=until,
        delivery=head.pk,
        task_id=head.task_id,
        seq=head.seq,
        language=head.language_name,
        notices=webhook.notices,
        body=head.body,
        attempt=head.attempt,
        url=webhook.url,
        address=webhook.address,
        host=webhook.host,
        schemes=webhook.schemes,
        token=webhook.token,
        credentials=webhook.credentials,
        secret=webhook.secret,
        updated_at=webhook.updated_at,
    )


def lock_webhook(webhook_id: str) -> Webhook | None:
    """Lock a webhook and return it. The lock is not waited for, because all other work shares this lane."""
    return Webhook.objects.select_for_update(no_key=True, nowait=True).filter(pk=webhook_id).first()


def lock_webhooks(webhook_ids: Iterable[str]) -> dict[str, Webhook]:
    """Lock webhooks in the order of their ids, without waiting, and return them by id."""
    rows = Webhook.objects.select_for_update(no_key=True, nowait=True).filter(pk__in=set(webhook_ids))
    return {row.pk: row for row in rows.order_by("pk")}


def settle(lease: DeliveryLease, result: TryResult, began: datetime, finish: datetime, chance: float) -> None:
    """Record a try. If the lease is still this one, also decide what becomes of the delivery and the webhook.

    A late result, after another sender has leased the webhook, changes no state: the new lease decides.
    """
    with transaction.atomic():
        webhook = lock_webhook(lease.webhook)
        delivery = Delivery.objects.defer("body").filter(pk=lease.delivery).first()
        if webhook is None or delivery is None:
            return  # The task was deleted with its deliveries.
        DeliveryTry.objects.create(
            delivery_id=lease.delivery,
            attempt=delivery.attempt + 1,
            at=began,
            status=result.status,
            error=result.error,
            duration_ms=max(0, int((finish - began).total_seconds() * 1_000)),
        )
        mine, now = webhook.lease_owner == lease.holder, clock.shared()
        delivery.attempt, delivery.status, delivery.error = delivery.attempt + 1, result.status, result.error
        if mine and decide(result) is Decision.DELIVERED:
            # Even if the delivery was dropped or given up during the try, it has arrived.
            move(delivery, DeliveryState.DELIVERED)
            delivery.done_at = now
        delivery.save(update_fields=["attempt", "status", "error", "state", "done_at"])
        if mine:
            _settle_webhook(lease, webhook, delivery, result, now, chance)


def _settle_webhook(
    lease: DeliveryLease, webhook: Webhook, delivery: Delivery, result: TryResult, now: datetime, chance: float
) -> None:
    mine = Delivery.objects.filter(webhook_id=webhook.pk, state=DeliveryState.WAITING)
    decision = decide(result)
    is_delivered = decision is Decision.DELIVERED
    late = now - delivery.created_at >= timedelta(hours=settings.A2A_DELIVERY_HOURS)
    # The webhook was registered again during the try. A success still counts; a failure was that of the former address.
    is_outdated = webhook.updated_at != lease.updated_at and not is_delivered
    again = now
    if not is_outdated and delivery.state == DeliveryState.WAITING and decision is Decision.RETRY and not late:
        again = next_try(result, delivery.attempt, now, chance)
    elif not is_outdated and decision is Decision.DROP:
        set_state(mine.filter(pk=delivery.pk), DeliveryState.DROPPED, done_at=now)
    elif not is_outdated and not is_delivered:
        end(mine.filter(pk=delivery.pk), now)
    webhook.lease_owner = webhook.lease_until = None
    if decision is Decision.DISABLE and not is_outdated and webhook.state == WebhookState.ACTIVE:
        move(webhook, WebhookState.DISABLED)
        webhook.reason = "its receiver answered 410 Gone"
        end(mine, now, error="The webhook was disabled before this was tried.")
    count_body(webhook, result.size, now, is_delivered=is_delivered)
    webhook.due_at = None
    if webhook.state == WebhookState.ACTIVE:
        webhook.reason = "" if result.is_made else f"held back: {result.error}"[:255]
        webhook.due_at = due_after(webhook, mine, again, is_delivered=is_delivered)
    webhook.updated_at = now
    webhook.save(update_fields=COLUMNS)


def end(waiting: QuerySet[Delivery], now: datetime, **error: str) -> None:
    """End waiting deliveries as dead, or as delivered if they were acknowledged before they were sent again."""
    acknowledgements = DeliveryTry.objects.filter(delivery_id=OuterRef("pk"), status__gte=200, status__lt=300)
    set_state(waiting.filter(Exists(acknowledgements)), DeliveryState.DELIVERED, done_at=now)
    set_state(waiting, DeliveryState.DEAD, done_at=now, **error)


def release(lease: DeliveryLease) -> None:
    """End a lease without a result: the try was not made, or its answer was lost."""
    with transaction.atomic():
        lock_webhook(lease.webhook)
        Webhook.objects.filter(pk=lease.webhook, lease_owner=lease.holder).update(lease_owner=None, lease_until=None)


def postpone(lease: DeliveryLease, seconds: float, sentence: str) -> None:
    """End a lease without a result, and make its webhook due after that many seconds. The sentence is for operators."""
    with transaction.atomic():
        lock_webhook(lease.webhook)
        due_at = clock.shared() + timedelta(seconds=seconds)
        mine = Webhook.objects.filter(pk=lease.webhook, lease_owner=lease.holder)
        mine.filter(state=WebhookState.ACTIVE).update(due_at=due_at, reason=sentence[:255])
        mine.update(lease_owner=None, lease_until=None)


def release_all() -> int:
    """End every lease. Only the first process of an installation may call this, at its start."""
    return Webhook.objects.filter(lease_until__isnull=False).update(lease_owner=None, lease_until=None)
