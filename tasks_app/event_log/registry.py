"""Registering and removing the webhooks of a task, under the lock of its row: see outbox.py."""

from datetime import datetime

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from a2a.dialects.webhooks import SIGNING_SCHEME
from a2a.states import TERMINAL, TaskState
from tasks_app import clock
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.rows import VISIBLE, WEBHOOKS, WebhookRow
from tasks_app.database.work import ItemRefused
from tasks_app.event_log.moves import set_state
from tasks_app.event_log.outbox import write_end
from tasks_app.models import Delivery, PushConfig, Task
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.sealing import has_same_url, is_readable, seal, site_of, unseal

MOST = 10
"""Webhooks a task."""
SEALED_AT_ONCE = 100
"""Addresses that are sealed in one transaction."""
_TASK = Task._meta.db_table
_LIVE = [state for state, _ in PushConfig.STATES if state != WebhookState.REMOVED]


class Full(ItemRefused):
    """The task has as many webhooks as it may have."""


class Register(Struct, kw_only=True):
    """A webhook for a task, or another address for the one of that id."""

    row: WebhookRow
    sight: str


class Remove(Struct, frozen=True, kw_only=True):
    """No more tries to the webhook of that id."""

    task_id: str
    config_id: str
    now: datetime


class UnderWay(Struct, frozen=True, kw_only=True):
    """A try of a webhook."""

    config: str
    lease: str

    def lasts(self) -> bool:
        """Neither its answer has been written down, nor has it had all its time."""
        mine = PushConfig.objects.filter(pk=self.config, lease_owner=self.lease)
        return mine.filter(lease_until__gt=clock.shared()).exists()


def register(wish: Register) -> bool:
    """False if the caller has no such task. Raises Full.

    A task may end between the answer that named it and this: the event of its end is delivered all the same.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        _lock(wish.row.task_id)
        cursor.execute(
            f"update {_TASK} as t set pushes = %s where id = %s and %s = {VISIBLE} returning state, last_seq",
            [True, wish.row.task_id, wish.sight],
        )
        found = cursor.fetchone()
        if found is None:
            return False
        known = put(cursor, wish.row)
        state, last = found
        if TaskState(state) in TERMINAL:
            write_end(cursor, wish.row, last, has_new_address=known is not None and not has_same_url(known, wish.row))
    return True


def _lock(task_id: str) -> None:
    """The lock that events and registrations take; whoever has it is not waited for."""
    Task.objects.select_for_update(no_key=True, nowait=True).only("pk").filter(pk=task_id).first()


def put(cursor: CursorWrapper, row: WebhookRow) -> PushConfig | None:
    """Stores the webhook in the place of that id, and gives what was there; the task's row is locked. Raises Full, and
    LockRefused."""
    mine = PushConfig.objects.filter(task_id=row.task_id)
    try:
        known = mine.select_for_update(no_key=True, nowait=True).filter(config_id=row.config_id).first()
    except OperationalError as error:
        if is_lock_refusal(error):
            raise LockRefused("somebody else holds the webhook", [row.task_id]) from error
        raise
    new = known is None or known.state == WebhookState.REMOVED
    if new and mine.filter(state__in=_LIVE).count() >= MOST:
        raise Full
    if known is None:
        WEBHOOKS.write(cursor, [row])
        return None
    if _is_the_same(known, row):
        # Its operator may have handed out the secret that this server made.
        # Sealed anew: a process of the version before must not be able to use it with a part of the address.
        row.secret = seal(unseal(known.secret))
    # What waits goes to the new address, at once.
    waiting = Delivery.objects.filter(config_id=known.pk, state=DeliveryState.WAITING).exists()
    row.id, row.created_at, row.due_at = known.pk, known.created_at, clock.shared() if waiting else None
    columns = {name: getattr(row, name) for name in WEBHOOKS.fields if name not in {"id", "state"}}
    set_state(mine.filter(pk=known.pk), WebhookState.ACTIVE, **columns)
    return known


def seal_addresses() -> int:
    """Seal addresses that the version before has kept in clear; how many, SEALED_AT_ONCE at most.

    The row stays the same to a try that is under way, which has read it.
    """
    with transaction.atomic():
        clear = PushConfig.objects.filter(address=None).order_by("pk")
        rows = list(clear.select_for_update(skip_locked=True, no_key=True)[:SEALED_AT_ONCE])
        for row in rows:
            row.address, row.url = seal(row.url), site_of(row.url)
            if row.secret and is_readable(row.secret):
                row.secret = seal(unseal(row.secret))
        PushConfig.objects.bulk_update(rows, ["address", "url", "secret"])
    return len(rows)


def _is_the_same(known: PushConfig, row: WebhookRow) -> bool:
    """Tell whether it is the same address again, without a secret of its owner before or now."""
    brought = any(schemes.partition(" ")[0].lower() == SIGNING_SCHEME for schemes in (known.schemes, row.schemes))
    return (
        known.state != WebhookState.REMOVED and has_same_url(known, row) and not brought and is_readable(known.secret)
    )


def remove(wish: Remove) -> UnderWay | None:
    """Ends the webhook; the try that began before and is still under way, if there is one."""
    with transaction.atomic():
        _lock(wish.task_id)
        mine = PushConfig.objects.filter(task_id=wish.task_id)
        found = mine.filter(config_id=wish.config_id).select_for_update(no_key=True, nowait=True).first()
        if found is None:
            return None
        if found.state != WebhookState.REMOVED:
            drop(found, wish.now)
            if not mine.filter(state__in=_LIVE).exists():
                Task.objects.filter(pk=wish.task_id).update(pushes=False)
        if not Delivery.objects.filter(config_id=found.pk).exists():
            found.delete()  # Nothing was ever tried, and nobody would look for it.
            return None
    if found.lease_owner is None or found.lease_until is None or found.lease_until <= clock.shared():
        return None
    return UnderWay(config=found.pk, lease=found.lease_owner)


def drop(config: PushConfig, now: datetime) -> None:
    """Nothing of it is tried again, and nothing that was secret is kept."""
    set_state(Delivery.objects.filter(config_id=config.pk), DeliveryState.DROPPED, done_at=now)
    nothing = {"token": "", "credentials": "", "secret": "", "due_at": None}
    mine = PushConfig.objects.filter(pk=config.pk)
    set_state(mine, WebhookState.REMOVED, reason="removed by its owner", updated_at=now, **nothing)
