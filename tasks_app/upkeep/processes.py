"""One row for each process: its role, the state of its clock, its troubles. Each sweep writes it.

The rows are also a check of the clock. If the last process wrote yesterday and it seems to be a year later, the clock
may be wrong, and deleting by it would delete everything.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import orjson
from django.db import transaction
from django.db.models import Max

from tasks_app import __version__, clock, counters
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import Exchange, Process
from tasks_app.operators.audit import Change, Operator, record_acts

GAP = timedelta(days=3)
"""The longest time without a write that needs no explanation. After a longer one the clock may be ahead."""
TRIAL = 86_400.0
"""Seconds that a process runs after such a gap before it trusts the clock: a wrong clock is usually set by then."""
AHEAD = timedelta(seconds=60)
"""How far the newest row may be ahead of the clock. If it is further, the clock may be behind."""
RETENTION = timedelta(days=1)
"""How long the row of a process that has ended stays."""
MOST_COUNTED = 500
"""Processes without doors whose counters are shown, those that wrote last."""
WEB = "web"
"""The role of a process with doors."""
CONFIRM = "if the clock is right, confirm it: manage.py a2a processes --clock-is-right"

trouble_sources: list[Callable[[], list[str]]] = []
"""Functions that return sentences about delays in this process. `/readyz` and the row show all of them."""


def troubles() -> list[str]:
    """Return the sentences of all sources."""
    return [sentence for source in trouble_sources for sentence in source()]


class ProcessRow:
    """The row of this process."""

    def __init__(self) -> None:
        self.begin("command")

    def begin(self, role: str) -> None:
        """Start a new row. A forked child must call this: it has a copy of its parent's row."""
        self.name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(3)}"
        self.role = role
        self.started = time.monotonic()
        self.last_write = 0.0
        """The time of the last write on the monotonic clock; 0 before the first."""
        self.lost = 0
        """Exchanges that this process failed to record."""
        self.lag: float | None = None
        """Seconds by which deleting is behind; None while this process has not measured it."""
        self.gap = ""
        """A sentence that says why the rows make the clock doubtful; empty if they do not."""

    @property
    def write_age(self) -> float:
        """Seconds since the row was written. A large value means that this process cannot write."""
        return time.monotonic() - (self.last_write or self.started)

    def write(self, lost: int = 0, *, ended: bool = False) -> None:
        """Measure the clock and write the row. Errors of the database pass through."""
        self.lost = lost
        bridge.do(Do(partial(self._write, ended)), patience=0)
        self.last_write = time.monotonic()

    def read_clock(self) -> datetime:
        """Measure the clock on this thread's connection, compare it with the rows, and return the time."""
        clock.anchor.measure()
        now = clock.now()
        self.gap = self._find_gap(now)
        return now

    def _write(self, ended: bool) -> None:
        now = self.read_clock()
        steady = not clock_doubts()
        began = now - timedelta(seconds=time.monotonic() - self.started)
        row = Process(
            name=self.name,
            role=self.role,
            version=__version__,
            started_at=began,
            seen_at=now,
            ended_at=now if ended else None,
            steady_at=now if steady else None,
            clock_off=round(clock.anchor.off, 3),
            troubles=orjson.dumps(troubles()).decode(),
            lost=self.lost,
            lag=self.lag,
            counters=None if self.role == WEB else orjson.dumps(counters.snapshot()).decode(),
        )
        changing = ["seen_at", "ended_at", "clock_off", "troubles", "lost", "lag", "counters"]
        if steady:
            # `steady_at` is the last time at which a process trusted its clock. A doubtful clock leaves it as it was.
            changing.append("steady_at")
        Process.objects.bulk_create([row], update_conflicts=True, unique_fields=["name"], update_fields=changing)
        if steady:
            Process.objects.filter(seen_at__lt=now - RETENTION).delete()

    def _find_gap(self, now: datetime) -> str:
        """Return why the rows make the clock doubtful; an empty text if they do not."""
        newest = _newest()
        if newest is None:
            return ""
        if newest - now > AHEAD:
            return (
                f"clock: the database was last written to at {newest:%Y-%m-%dT%H:%M:%SZ}, which is still to come by "
                f"this clock, so nothing is deleted; set the clock, or {CONFIRM}"
            )
        if now - newest > GAP and time.monotonic() - self.started < TRIAL:
            return (
                f"clock: the database was last written to at {newest:%Y-%m-%dT%H:%M:%SZ}, {(now - newest).days} days "
                f"ago, so nothing is deleted for a day; {CONFIRM}"
            )
        return ""


def read_counters() -> dict[str, counters.Snapshot]:
    """Return the counters of the processes without doors, as of their last sweep, by their names."""
    rows = Process.objects.filter(counters__isnull=False).order_by("-seen_at")
    return {name: orjson.loads(stored or "{}") for name, stored in rows.values_list("name", "counters")[:MOST_COUNTED]}


def _newest() -> datetime | None:
    """Return when a process last trusted its clock; without such a row, the time of the newest exchange."""
    newest: datetime | None = Process.objects.aggregate(newest=Max("steady_at"))["newest"]
    return newest or Exchange.objects.order_by("-id").values_list("created_at", flat=True).first()


process_row = ProcessRow()
"""The row of this process."""


def clock_doubts() -> list[str]:
    """Return the reasons why this process must not delete by its clock; none when it may."""
    return [*clock.anchor.doubts(), *([process_row.gap] if process_row.gap else [])]


trouble_sources.append(clock_doubts)


def confirm_clock(by: Operator) -> Process:
    """Store that an operator has confirmed the clock, and record the act. Deleting goes on with the next sweep."""
    now = clock.now()
    with transaction.atomic():
        Process.objects.filter(steady_at__gt=now).update(steady_at=None)
        row, _ = Process.objects.update_or_create(
            name=f"operator:{by.name[:50]}",
            defaults={
                "role": "operator",
                "version": __version__,
                "started_at": now,
                "seen_at": now,
                "ended_at": now,
                "steady_at": now,
            },
        )
        record_acts(by, "confirm clock", Change(row))
    return row
