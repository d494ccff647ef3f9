"""Findings about processes, from the rows that they write: wrong clocks, deleting that is behind, other troubles."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import orjson
from django.conf import settings

from tasks_app import clock
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import guard
from tasks_app.models import Process

BEHIND = 3600.0
"""Seconds by which deleting may be behind. It gives way to writers, so some delay is normal."""


def examine_processes(now: datetime) -> Iterator[Finding]:
    """Yield findings about the live processes. `now` is the time by the database's clock."""
    alive = now - timedelta(seconds=60 + 3 * settings.A2A_SWEEP_SECONDS)
    for row in Process.objects.filter(ended_at=None, seen_at__gt=alive).order_by("name"):
        yield from guard(_examine(row), f"process {row.name}", kind="process", subject=row.name)


def _examine(row: Process) -> Iterator[Finding]:
    who = f"Process {row.name} ({row.role})"
    if abs(row.clock_off) > clock.APART:
        yield Finding(
            kind="clock",
            subject=row.name,
            problem=f"{who}: its machine's clock differs from the database's by {row.clock_off:+.0f} s.",
            remedy="Set the clock that is wrong; until then this process deletes nothing.",
        )
    if row.lag is not None and row.lag > BEHIND:
        yield Finding(
            kind="retention",
            subject=row.name,
            problem=f"{who}: rows that are past their time are deleted {row.lag / 3600:.1f} h late.",
            remedy="Delete them at a quiet time: manage.py a2a purge; or keep less: A2A_EXCHANGE_DAYS, A2A_TASK_DAYS.",
        )
    for sentence in orjson.loads(row.troubles):
        if sentence.startswith("clock:") and abs(row.clock_off) > clock.APART:
            continue  # The finding above says it.
        yield Finding(
            kind="process", subject=row.name, problem=f"{who}: {sentence}.", remedy="The log of that process says more."
        )
