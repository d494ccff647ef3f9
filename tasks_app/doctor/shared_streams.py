"""Findings about shared streams: answers of agents that no process goes on with."""

from collections.abc import Iterator
from datetime import datetime

from tasks_app.doctor.finding import Finding
from tasks_app.doctor.work import LATE, MOST
from tasks_app.models import AgentAnswer
from tasks_app.shared_streams.waiting import is_behind


def examine_shared_streams(now: datetime) -> Iterator[Finding]:
    """Yield answers that are due and wait for nothing. `now` is the time by the database's clock."""
    rows = AgentAnswer.objects.filter(~is_behind(), due_at__lt=now - LATE, waits_since__isnull=True)
    for row in rows.order_by("due_at")[:MOST]:
        yield Finding(
            kind="stream",
            subject=row.stream_id,
            problem=f"The answer of agent {row.agent} to message {row.seq} of shared stream {row.stream_id} has been "
            f"due since {row.due_at:%Y-%m-%d %H:%M:%S} UTC, and no process goes on with it.",
            remedy="Start a server. If one runs, its moderator does not work: see its log.",
        )
