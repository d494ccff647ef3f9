"""Idle shared streams: they are closed after A2A_SHARED_STREAM_HOURS without a chunk."""

import logging
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings

from a2a.errors import SharedStreamClosed, SharedStreamNotFound
from a2a.shared_streams import SharedStreamState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import DoApart
from tasks_app.models import SharedStream
from tasks_app.shared_streams.log import Write, append
from tasks_app.shared_streams.translation import state_entry
from tasks_app.upkeep.expiry import Turns

log = logging.getLogger(__name__)
OPEN = [state.value for state in SharedStreamState if state is not SharedStreamState.CLOSED]
turns = Turns[SharedStream]("active_at")
"""The turns of owners for shared streams that are closed."""


def close_idle_streams() -> int:
    """Close the shared streams that were idle for too long; return their number."""
    hours, count = settings.A2A_SHARED_STREAM_HOURS, 0
    if not hours:
        return 0
    before = bridge.do(DoApart(clock.shared)) - timedelta(hours=hours)
    reason = f"no participant sent anything for {hours:g} hours"
    end = state_entry("sweeper", SharedStreamState.CLOSED, reason)
    for stream_id in bridge.do(DoApart(partial(_idle, before))):
        try:
            bridge.do(Write(partial(append, stream_id, [end], idle_since=before)), patience=0)
        except (LockRefused, SharedStreamClosed, SharedStreamNotFound):
            continue  # It has ended or is in use.
        count += 1
        log.info("shared stream %s: %s", stream_id, reason)
    return count


def _idle(before: datetime) -> list[str]:
    rows = SharedStream.objects.filter(closed_at__isnull=True, active_at__lt=before).order_by("active_at").only("id")
    return [row.pk for row in turns.take(rows, OPEN)]
