"""Whose turn it is: a lease on a webhook for one try of its oldest delivery, and what is written after the try.

All of it is in transactions of the write lane. Leases, and when a delivery is due, are by the clock that all senders
share.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from secrets import token_hex

from django.conf import settings
from django.db import transaction
from django.db.models import Case, DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value, When
from msgspec import Struct

from tasks_app import clock
from tasks_app.models import Delivery, DeliveryTry, PushConfig
from tasks_app.webhooks.heads import count_body, due_after, heads, supersede
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult, next_try, verdict

LEASE = timedelta(seconds=20)
"""Longer than a try may take: after it the sender must be gone."""
WRITTEN = (
    "lease_owner", "lease_until", "state", "reason", "due_at", "updated_at", "rests_until", "body_bytes", "sent_bytes",
)  # fmt: skip
"""Columns of a webhook that the end of a try may change."""


class Turn(Struct, frozen=True, kw_only=True):
    """One try that is to be made now."""

    config: str
    owner_id: int
    lease: str
    until: datetime
    """The end of the lease, by the clock of this machine."""
    delivery: str
    task_id: str
    seq: int
    language: str
    body: str | None
    """The body of a row that was written with one; None: it is made from the log."""
    tries: int
    url: str
    address: str | None
    host: str
    schemes: str
    token: str
    credentials: str
    secret: str
    updated_at: datetime
    """The version of the webhook's row that is tried."""


def has_key(now: datetime) -> Q:
    """Return the condition of webhooks whose key is good still, or that were registered before keys were noted."""
    lasts = Q(key__expires_at=None) | Q(key__expires_at__gt=now)
    return Q(key=None) | (Q(key__revoked_at=None) & lasts)


def due(now: datetime, busy: Busy) -> QuerySet[PushConfig]:
    """The webhooks whose turn it is, longest due first; not those for which there is no room."""
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    rows = PushConfig.objects.filter(free, has_key(now), state="active", due_at__lte=now).order_by("due_at")
    pairs, hosts, owners = busy.full()
    if hosts:
        rows = rows.exclude(host__in=hosts)
    if owners:
        rows = rows.exclude(task__owner_id__in=owners)
    for owner_id, host in pairs:
        rows = rows.exclude(task__owner_id=owner_id, host=host)
    return rows


def take(worker: str, limit: int, busy: Busy) -> list[Turn]:
    """Lease so many turns at most, and count them in busy.

    No other sender gets them until they are settled, or the lease is over. However many there are, the number of
    statements is the same.
    """
    # This machine's clock first: the lease must not seem to last longer than it does.
    lease, until = f"{worker[:48]}:{token_hex(6)}", clock.now() + LEASE
    with transaction.atomic():
        now = clock.shared()
        found = due(now, busy).annotate(owner_id=F("task__owner_id"))
        configs = list(found.select_for_update(of=("self",), skip_locked=True, no_key=True)[:limit])
        chosen = heads(configs)
        turns: list[Turn] = []
        held_back: dict[str, datetime] = {}
        for config in configs:
            if config.pk not in chosen:
                continue
            if seconds := busy.sent.wait(config.owner_id, clock.now()) if busy.sent else 0.0:
                held_back[config.pk] = now + timedelta(seconds=seconds)
            elif busy.has_room(config.owner_id, config.host):
                turns.append(_turn(config, config.owner_id, chosen[config.pk], lease, until))
                busy.add(turns[-1])
        _hold_back(held_back)
        _write(turns, [config.pk for config in configs if config.pk not in chosen], lease, now)
        supersede([chosen[turn.config] for turn in turns], now)
    return turns


def _write(turns: list[Turn], idle: list[str], lease: str, now: datetime) -> None:
    """Write the leases; webhooks for which nothing waits are due no more."""
    if idle:
        PushConfig.objects.filter(pk__in=idle).update(due_at=None)
    if turns:
        # The log grows from the event of this body on.
        PushConfig.objects.filter(pk__in=[turn.config for turn in turns]).update(
            lease_owner=lease, lease_until=now + LEASE, grown=0, reason=""
        )


def _hold_back(times: dict[str, datetime]) -> None:
    """Make webhooks due later whose owners have had too much sent."""
    if times:
        later = Case(*(When(pk=pk, then=Value(at)) for pk, at in times.items()), output_field=DateTimeField())
        PushConfig.objects.filter(pk__in=times).update(due_at=later, reason=too_much_sent())


def too_much_sent() -> str:
    """Return what operators read of a webhook whose owner waits for the next minute."""
    return f"held back: its owner has had more than {settings.A2A_OWNER_DELIVERY_BYTES} bytes sent in a minute"


def _turn(config: PushConfig, owner_id: int, head: Delivery, lease: str, until: datetime) -> Turn:
    return Turn(
        config=config.pk, owner_id=owner_id, lease=lease, until=until, delivery=head.pk, task_id=head.task_id,
        seq=head.seq, language=head.spoken, body=head.body, tries=head.tries, url=config.url, address=config.address,
        host=config.host,
        schemes=config.schemes, token=config.token, credentials=config.credentials, secret=config.secret,
        updated_at=config.updated_at,
    )  # fmt: skip


def locked(config_id: str) -> PushConfig | None:
    """Return the webhook, locked. A lock of another process is not waited for: all senders share the lane."""
    return PushConfig.objects.select_for_update(no_key=True, nowait=True).filter(pk=config_id).first()


def locked_all(config_ids: Iterable[str]) -> dict[str, PushConfig]:
    """Return the webhooks by id, locked in the order of their ids. A row that is locked already is not waited for."""
    rows = PushConfig.objects.select_for_update(no_key=True, nowait=True).filter(pk__in=set(config_ids))
    return {row.pk: row for row in rows.order_by("pk")}


def settle(turn: Turn, result: TryResult, began: datetime, ended: datetime, chance: float) -> None:
    """Write down the try and its verdict. After a lease has ended the new holder decides, not a late one."""
    with transaction.atomic():
        config = locked(turn.config)
        delivery = Delivery.objects.defer("body").filter(pk=turn.delivery).first()
        if config is None or delivery is None:
            return  # Forgotten together with its task.
        DeliveryTry.objects.create(
            delivery_id=turn.delivery, number=delivery.tries + 1, at=began, status=result.status, error=result.error,
            duration_ms=max(0, int((ended - began).total_seconds() * 1_000)),
        )  # fmt: skip
        mine, now = config.lease_owner == turn.lease, clock.shared()
        delivery.tries, delivery.status, delivery.error = delivery.tries + 1, result.status, result.error
        if mine and verdict(result) == "delivered":
            # One that was dropped, or given up, while it was under way has arrived even so.
            delivery.state, delivery.done_at = "delivered", now
        delivery.save(update_fields=["tries", "status", "error", "state", "done_at"])
        if mine:
            _decide(turn, config, delivery, result, now, chance)


def _decide(
    turn: Turn, config: PushConfig, delivery: Delivery, result: TryResult, now: datetime, chance: float
) -> None:
    mine = Delivery.objects.filter(config_id=config.pk, state="waiting")
    decision = verdict(result)
    delivered = decision == "delivered"
    late = now - delivery.created_at >= timedelta(hours=settings.A2A_DELIVERY_HOURS)
    # Registered again while this was under way: that something arrived is true, all else is about the former address.
    outdated = config.updated_at != turn.updated_at and not delivered
    again = now
    if not outdated and delivery.state == "waiting" and decision == "again" and not late:
        again = next_try(result, delivery.tries, now, chance)
    elif not outdated and not delivered:
        end(mine.filter(pk=delivery.pk), now)
    config.lease_owner = config.lease_until = None
    if decision == "gone" and not outdated and config.state == "active":
        config.state, config.reason = "disabled", "its receiver answered 410 Gone"
        end(mine, now, error="The webhook was disabled before this was tried.")
    count_body(config, result.size, now, delivered=delivered)
    config.due_at = due_after(config, mine, again, delivered=delivered) if config.state == "active" else None
    config.updated_at = now
    config.save(update_fields=WRITTEN)


def end(waiting: QuerySet[Delivery], now: datetime, **error: str) -> None:
    """No more tries of these: what was acknowledged once, and then sent again, has been delivered."""
    acknowledged = DeliveryTry.objects.filter(delivery_id=OuterRef("pk"), status__gte=200, status__lt=300)
    waiting.filter(Exists(acknowledged)).update(state="delivered", done_at=now)
    waiting.update(state="dead", done_at=now, **error)


def release(turn: Turn) -> None:
    """Give the turn back: it was not made, or its answer is lost."""
    with transaction.atomic():
        locked(turn.config)
        PushConfig.objects.filter(pk=turn.config, lease_owner=turn.lease).update(lease_owner=None, lease_until=None)


def postpone(turn: Turn, seconds: float, sentence: str) -> None:
    """Give the turn back, and make its webhook due after so many seconds. The sentence is for operators."""
    with transaction.atomic():
        locked(turn.config)
        due_at = clock.shared() + timedelta(seconds=seconds)
        mine = PushConfig.objects.filter(pk=turn.config, lease_owner=turn.lease)
        mine.filter(state="active").update(due_at=due_at, reason=sentence[:255])
        mine.update(lease_owner=None, lease_until=None)


def release_all() -> int:
    """Ends every lease: at the start of the only process that there is."""
    return PushConfig.objects.filter(lease_until__isnull=False).update(lease_owner=None, lease_until=None)
