"""One row a process: who runs, how its clock stands, what troubles it. Written with every sweep.

The rows are also the memory of the clock: a database that was written to until yesterday is not a year older today.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import orjson
from django.db.models import Max

from tasks_app import __version__, clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import Exchange, Process

GAP = timedelta(days=3)
"""A database that nobody wrote to for longer may be one on a machine whose clock is ahead."""
TRIAL = 86_400.0
"""Seconds that a process runs after such a gap before it trusts the clock: a wrong one is set right by then."""
AHEAD = timedelta(seconds=60)
"""A database whose rows are further ahead than that is on a machine whose clock is behind."""
KEPT = timedelta(days=1)
"""How long the row of a process that is gone stays."""
CONFIRM = "if the clock is right, say so: manage.py a2a processes --clock-is-right"

sources: list[Callable[[], list[str]]] = []
"""Functions that say in sentences what makes things late in this process. `/readyz` and the row show all of them."""


def troubles() -> list[str]:
    """Return what all sources say."""
    return [sentence for source in sources for sentence in source()]


class Entry:
    """The row of this process."""

    def __init__(self) -> None:
        self.begin("command")

    def begin(self, role: str) -> None:
        """Start a row of its own: a forked child has the memory of its parent."""
        self.name = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(3)}"
        self.role = role
        self.started = time.monotonic()
        self.last_written = 0.0
        """When the row was written last, on the monotonic clock; 0 before the first time."""
        self.lost = 0
        self.lag: float | None = None
        """Seconds by which deleting is behind; None while this process has not measured it."""
        self.gap = ""
        """Why the rows make the clock doubtful."""

    @property
    def written_age(self) -> float:
        """Seconds since the row was written: the proof that this process can write."""
        return time.monotonic() - (self.last_written or self.started)

    def write(self, lost: int = 0, *, ended: bool = False) -> None:
        """Measure the clock and write the row. Raises what the database raises."""
        self.lost = lost
        bridge.do(Do(partial(self._write, ended)), patience=0)
        self.last_written = time.monotonic()

    def look(self) -> datetime:
        """Measure the clock, on this thread's connection, and compare it with the rows; return the time."""
        clock.anchor.measure()
        now = clock.now()
        self.gap = self._gap(now)
        return now

    def _write(self, ended: bool) -> None:
        now = self.look()
        steady = not doubts()
        began = now - timedelta(seconds=time.monotonic() - self.started)
        row = Process(
            name=self.name, role=self.role, version=__version__, started_at=began, seen_at=now,
            ended_at=now if ended else None, steady_at=now if steady else None, clock_off=round(clock.anchor.off, 3),
            troubles=orjson.dumps(troubles()).decode(), lost=self.lost, lag=self.lag,
        )  # fmt: skip
        changing = ["seen_at", "ended_at", "clock_off", "troubles", "lost", "lag"]
        if steady:
            changing.append("steady_at")
        Process.objects.bulk_create([row], update_conflicts=True, unique_fields=["name"], update_fields=changing)
        if steady:
            Process.objects.filter(seen_at__lt=now - KEPT).delete()

    def _gap(self, now: datetime) -> str:
        """Return why the rows make the clock doubtful; empty when they do not."""
        newest = _newest()
        if newest is None:
            return ""
        if newest - now > AHEAD:
            return (
                f"clock: the database was last written to at {newest:%Y-%m-%dT%H:%M:%SZ}, which is still to come, so "
                f"nothing is deleted; set the clock, or {CONFIRM}"
            )
        if now - newest > GAP and time.monotonic() - self.started < TRIAL:
            return (
                f"clock: the database was last written to at {newest:%Y-%m-%dT%H:%M:%SZ}, {(now - newest).days} days "
                f"ago, so nothing is deleted for a day; {CONFIRM}"
            )
        return ""


def _newest() -> datetime | None:
    """Return when a process last trusted its clock; in a database without such a row, when a call came last."""
    newest: datetime | None = Process.objects.aggregate(newest=Max("steady_at"))["newest"]
    return newest or Exchange.objects.order_by("-id").values_list("created_at", flat=True).first()


entry = Entry()
"""This process's."""


def doubts() -> list[str]:
    """Return why this process must not delete by its clock; empty when it may."""
    return [*clock.anchor.doubts(), *([entry.gap] if entry.gap else [])]


sources.append(doubts)


def confirm(operator: str) -> Process:
    """Write down that an operator finds the clock right. Deleting goes on from the next sweep."""
    now = clock.now()
    Process.objects.filter(steady_at__gt=now).update(steady_at=None)
    row, _ = Process.objects.update_or_create(
        name=f"operator:{operator[:50]}",
        defaults={
            "role": "operator", "version": __version__, "started_at": now, "seen_at": now, "ended_at": now,
            "steady_at": now,
        },
    )  # fmt: skip
    return row
