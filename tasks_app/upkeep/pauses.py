"""Pauses between two attempts, after the database's clock was set back."""

import logging
from datetime import timedelta

from django.db import transaction

from a2a.states import RUNNABLE
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.models import Task

log = logging.getLogger(__name__)
BATCH = 1_000
"""Tasks whose pauses one sweep begins again."""


def restart_pauses() -> int:
    """Let each pause that began in the future begin now, and return their number.

    Otherwise the pause of a task would be longer by the time by which the clock was set back, such as a day. A pause
    that two processes begin again is longer by the seconds between them.
    """
    count = bridge.do(DoApart(_restart), patience=0)
    if count:
        log.warning("the clock was set back: the pauses of %d tasks between two attempts begin again", count)
    return count


def _restart() -> int:
    now = clock.shared()
    ahead = now + timedelta(seconds=clock.APART)
    paused = Task.objects.filter(state__in=[state.value for state in RUNNABLE], not_before__gt=now, status_at__gt=ahead)
    with transaction.atomic():
        rows = paused.select_for_update(skip_locked=True).values_list("id", "not_before", "status_at")[:BATCH]
        for task_id, end, start in rows:
            pause = max((end or start) - start, timedelta())
            Task.objects.filter(pk=task_id).update(not_before=now + pause)
    return len(rows)
