"""What time alone must do: take up what lost workers held (leases.py), offer, forget the old."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a.states import TERMINAL
from tasks_app import clock, files
from tasks_app.bridge import Do, bridge
from tasks_app.event_log import Held
from tasks_app.exchanges import recorder
from tasks_app.hints import hints
from tasks_app.ids import uuid7_at
from tasks_app.leases import take_up
from tasks_app.models import (
    Delivery,
    DeliveryTry,
    Exchange,
    ExchangeBody,
    File,
    IdempotencyKey,
    PushConfig,
    Run,
    Task,
    Turn,
)
from tasks_app.models import Event as EventModel
from tasks_app.processes import doubts, entry

log = logging.getLogger(__name__)
BATCH = 200
"""Rows of one kind handled in one sweep."""
FAREWELL = 5.0
"""Seconds that the deleting of files may take when the process ends."""
FORGETTING = 1.0
"""Seconds of a sweep that may go into deleting."""


class Sweeper:
    """The loop, one in every process; the conditions of append make many of them harmless."""

    def __init__(self) -> None:
        self.last = 0.0
        """When the last sweep ended, on the monotonic clock; 0 before the first."""
        self.judges_at: float | None = None
        """On the same clock: when leases are judged again after a sweep that was late."""
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.deleting: threading.Thread | None = None
        """Of files, apart: a storage that hangs holds up no task."""
        self.renew: Callable[[], None] = lambda: None
        """Lets this process renew the leases that it holds itself; see services.py."""

    @property
    def age(self) -> float:
        """Seconds since the last sweep."""
        return time.monotonic() - self.last

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping.clear()
        self.last = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="sweeper", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread is not None:
            self.thread.join(10)
            self.thread = None
        if self.deleting is not None:
            self.deleting.join(FAREWELL)
            self.deleting = None

    def _run(self) -> None:
        while not self.stopping.wait(settings.A2A_SWEEP_SECONDS):
            try:
                self.sweep()
            except Exception:
                log.exception("the sweep failed; trying again in %g s", settings.A2A_SWEEP_SECONDS)

    def sweep(self) -> None:
        """Once, now."""
        with suppress(Held):  # The next sweep writes it.
            entry.write(recorder.lost)
        recorder.offer()
        if self._is_calm():
            take_up(self.renew)
        else:
            self.renew()
        hints.offer()
        if not doubts():
            self.forget()
            self.delete_files()
        self.last = time.monotonic()

    def forget(self) -> None:
        """Delete what is past its time, as far as a sweep's share of time goes."""
        started = time.monotonic()
        with suppress(Held):  # What is old can wait.
            while bridge.do(Do(forget), patience=0) and time.monotonic() - started < FORGETTING:
                pass

    def _is_calm(self) -> bool:
        """Whether leases may be judged. A sweep that comes late is one after the database was away, or this process
        asleep: for a third of a lease every process renews what it holds before any of it is judged."""
        now, third = time.monotonic(), settings.A2A_LEASE_SECONDS / 3
        if self.judges_at is None and self.last and now - self.last > settings.A2A_SWEEP_SECONDS + third:
            self.judges_at = now + third
            log.warning("the last sweep was %.0f s ago: leases are judged in %.1f s", now - self.last, third)
        if self.judges_at is not None and now < self.judges_at:
            return False
        self.judges_at = None
        return True

    def delete_files(self) -> None:
        """Begins to, unless it is still at it from the last time."""
        if self.deleting is None or not self.deleting.is_alive():
            self.deleting = threading.Thread(target=files.sweep, name="sweeper-files", daemon=True)
            self.deleting.start()


sweeper = Sweeper()
"""Of this process."""


def forget() -> bool:
    """Deletes a batch of what is past its time, small enough not to hold up others; whether there may be more."""
    now = clock.now()
    days = now - timedelta(days=settings.A2A_TASK_DAYS)
    forgotten = now - timedelta(hours=settings.A2A_KEY_HOURS)
    keys = IdempotencyKey.objects.filter(created_at__lt=forgotten).order_by("created_at")
    known = list(keys.values_list("owner_id", "key")[:BATCH])
    for owner_id, key in known:
        IdempotencyKey.objects.filter(owner_id=owner_id, key=key).delete()
    exchange_days = now - timedelta(days=settings.A2A_EXCHANGE_DAYS)
    exchanges = Exchange.objects.filter(id__lt=uuid7_at(exchange_days))
    old = _ids(exchanges)
    ExchangeBody.objects.filter(exchange_id__in=old).delete()
    Exchange.objects.filter(id__in=old).delete()
    turns = _ids(Turn.objects.filter(id__lt=uuid7_at(days)))
    # Their bytes go next, which may take longer than a transaction should.
    File.objects.filter(holder__in=turns).update(holder="")
    Turn.objects.filter(id__in=turns).delete()
    # Ids begin with the time, so the primary key is an index on age.
    terminal = [state.value for state in TERMINAL]
    waiting = Delivery.objects.filter(task_id=OuterRef("id"), state="waiting")
    ended = Task.objects.filter(id__lt=uuid7_at(days), status_at__lt=days, state__in=terminal)
    tasks = _ids(ended.exclude(Q(pushes=True) & Exists(waiting)))
    if _forget_deliveries(tasks, exchange_days):
        return True  # The tasks go when nothing points at them.
    File.objects.filter(holder__in=tasks).update(holder="")
    for model in (EventModel, Run, PushConfig):
        model.objects.filter(task_id__in=tasks).delete()
    Task.objects.filter(id__in=tasks).delete()
    return any(len(found) == BATCH for found in (known, old, turns, tasks))


def _forget_deliveries(tasks: list[str], before: datetime) -> bool:
    """The same of the deliveries of these tasks, and of those that arrived before then."""
    sent = _ids(Delivery.objects.filter(id__lt=uuid7_at(before), state__in=["delivered", "superseded"]))
    theirs = _ids(Delivery.objects.filter(task_id__in=tasks)) if tasks else []
    DeliveryTry.objects.filter(delivery_id__in=[*sent, *theirs]).delete()
    Delivery.objects.filter(id__in=[*sent, *theirs]).delete()
    return BATCH in {len(sent), len(theirs)}


def _ids(rows: QuerySet[Any]) -> list[str]:
    """The oldest; what somebody holds is left for later."""
    with transaction.atomic():
        free = rows.select_for_update(skip_locked=True, of=("self",))
        return list(free.order_by("id").values_list("id", flat=True)[:BATCH])
