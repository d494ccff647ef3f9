"""Registers and removes webhooks of a task, under the lock of its row: see outbox.py."""

from datetime import datetime

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from a2a.dialects.webhook_fields import SIGNING_SCHEME
from a2a.states import TERMINAL, TaskState
from tasks_app import clock
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.rows import AuditRow, WebhookRow
from tasks_app.database.sql import VISIBLE
from tasks_app.database.tables import AUDIT, WEBHOOKS
from tasks_app.database.work import ItemRefused
from tasks_app.event_log.moves import set_state
from tasks_app.event_log.outbox import write_end
from tasks_app.models import Delivery, Task, Webhook
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.sealing import has_same_url, is_readable, seal, site_of, unseal

MAX_WEBHOOKS = 10
"""Webhooks that a task may have."""
SEAL_BATCH = 100
"""Addresses that one transaction seals, at most."""
_TASK = Task._meta.db_table
_LIVE = [state for state, _ in Webhook.STATES if state != WebhookState.REMOVED]


class Full(ItemRefused):
    """A refusal: the task has as many webhooks as it may have."""


class Register(Struct, kw_only=True):
    """A webhook to register, or a new address for the webhook with its id."""

    row: WebhookRow
    sight: str
    entry: AuditRow | None = None
    """The entry of the audit."""


class Remove(Struct, frozen=True, kw_only=True):
    """The webhook to remove."""

    task_id: str
    name: str
    now: datetime
    entry: AuditRow | None = None
    """The entry of the audit."""


class UnderWay(Struct, frozen=True, kw_only=True):
    """A delivery attempt that is under way."""

    webhook: str
    lease: str

    def lasts(self) -> bool:
        """Return whether the attempt may still send: its answer is not stored, and its lease has not ended."""
        mine = Webhook.objects.filter(pk=self.webhook, lease_owner=self.lease)
        return mine.filter(lease_until__gt=clock.shared()).exists()


def register(item: Register) -> bool:
    """Register a webhook. Return False if the caller has no such task. Raises Full.

    The task may have ended since the caller read it: the event of its end is delivered all the same.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        _lock(item.row.task_id)
        cursor.execute(
            f"update {_TASK} as t set pushes = %s where id = %s and %s = {VISIBLE} returning state, last_seq",
            [True, item.row.task_id, item.sight],
        )
        head = cursor.fetchone()
        if head is None:
            return False
        existing = put(cursor, item.row)
        state, last_seq = head
        if TaskState(state) in TERMINAL:
            has_new_address = existing is not None and not has_same_url(existing, item.row)
            write_end(cursor, item.row, last_seq, has_new_address=has_new_address)
        AUDIT.write(cursor, [item.entry] if item.entry else [])
    return True


def _lock(task_id: str) -> None:
    """Lock the row of a task, as appends do. Raises an error of the database if another transaction has locked it."""
    Task.objects.select_for_update(no_key=True, nowait=True).only("pk").filter(pk=task_id).first()


def put(cursor: CursorWrapper, row: WebhookRow) -> Webhook | None:
    """Store a webhook, and return the webhook that had its id before. The caller has locked the task's row.

    Raises Full and LockRefused.
    """
    webhooks = Webhook.objects.filter(task_id=row.task_id)
    try:
        existing = webhooks.select_for_update(no_key=True, nowait=True).filter(name=row.name).first()
    except OperationalError as error:
        if is_lock_refusal(error):
            raise LockRefused("another transaction has locked the webhook", [row.task_id]) from error
        raise
    is_new = existing is None or existing.state == WebhookState.REMOVED
    if is_new and webhooks.filter(state__in=_LIVE).count() >= MAX_WEBHOOKS:
        raise Full
    if existing is None:
        WEBHOOKS.write(cursor, [row])
        return None
    if _keeps_secret(existing, row):
        # The receiver may have the secret that this server generated: registering again must not change it. It is
        # sealed anew, or a process of the version before could use it with a part of the address.
        row.secret = seal(unseal(existing.secret))
    # Waiting deliveries go to the new address, at once.
    has_waiting = Delivery.objects.filter(webhook_id=existing.pk, state=DeliveryState.WAITING).exists()
    row.id, row.created_at, row.due_at = existing.pk, existing.created_at, clock.shared() if has_waiting else None
    columns = {name: getattr(row, name) for name in WEBHOOKS.fields if name not in {"id", "state"}}
    set_state(webhooks.filter(pk=existing.pk), WebhookState.ACTIVE, **columns)
    return existing


def seal_addresses() -> int:
    """Seal addresses that the version before stored in clear; return how many, SEAL_BATCH at most.

    A delivery attempt that is under way has read the row, and compares columns that this does not change.
    """
    with transaction.atomic():
        clear = Webhook.objects.filter(address=None).order_by("pk")
        rows = list(clear.select_for_update(skip_locked=True, no_key=True)[:SEAL_BATCH])
        for row in rows:
            row.address, row.url = seal(row.url), site_of(row.url)
            if row.secret and is_readable(row.secret):
                row.secret = seal(unseal(row.secret))
        Webhook.objects.bulk_update(rows, ["address", "url", "secret"])
    return len(rows)


def _keeps_secret(existing: Webhook, row: WebhookRow) -> bool:
    """Return whether the same address is registered again, with the secret of this server before and now."""
    schemes = [text.partition(" ")[0].lower() for text in (existing.schemes, row.schemes)]
    is_same = existing.state != WebhookState.REMOVED and has_same_url(existing, row)
    return is_same and SIGNING_SCHEME not in schemes and is_readable(existing.secret)


def remove(item: Remove) -> UnderWay | None:
    """Remove the webhook. Return its delivery attempt that began before and is still under way, if there is one."""
    with transaction.atomic(), connection.cursor() as cursor:
        _lock(item.task_id)
        AUDIT.write(cursor, [item.entry] if item.entry else [])
        webhooks = Webhook.objects.filter(task_id=item.task_id)
        webhook = webhooks.filter(name=item.name).select_for_update(no_key=True, nowait=True).first()
        if webhook is None:
            return None
        if webhook.state != WebhookState.REMOVED:
            drop(webhook, item.now)
            if not webhooks.filter(state__in=_LIVE).exists():
                Task.objects.filter(pk=item.task_id).update(pushes=False)
        if not Delivery.objects.filter(webhook_id=webhook.pk).exists():
            webhook.delete()  # No delivery refers to the row.
            return None
    if webhook.lease_owner is None or webhook.lease_until is None or webhook.lease_until <= clock.shared():
        return None
    return UnderWay(webhook=webhook.pk, lease=webhook.lease_owner)


def drop(webhook: Webhook, now: datetime) -> None:
    """Mark a webhook as removed: its waiting deliveries are dropped and its secrets deleted."""
    set_state(Delivery.objects.filter(webhook_id=webhook.pk), DeliveryState.DROPPED, done_at=now)
    blank = {"token": "", "credentials": "", "secret": "", "due_at": None}
    rows = Webhook.objects.filter(pk=webhook.pk)
    set_state(rows, WebhookState.REMOVED, reason="removed by its owner", updated_at=now, **blank)
