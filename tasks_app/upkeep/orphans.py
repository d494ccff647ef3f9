"""Reservations of quick agents whose call died before it stored a task, and advances of dead processes."""

import logging

from django.db import transaction

from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.prepared import prepared
from tasks_app.database.work import DoApart
from tasks_app.limits.budgets import orphans, settle
from tasks_app.limits.draws import charge_drawn, ended_advances
from tasks_app.limits.lock_waits import lock_waits

log = logging.getLogger(__name__)


def release_orphans() -> int:
    """Give back the reservations of calls that died; return the number of calls."""
    try:
        count = bridge.do(DoApart(_release), patience=0)
    except LockRefused:
        return 0  # The next sweep tries again.
    if count:
        log.warning("%d calls of quick agents died before they stored a task; what they reserved is given back", count)
    return count


def _release() -> int:
    with prepared() as cursor, transaction.atomic():
        tasks = orphans(cursor)
        advances = [*tasks, *ended_advances(cursor)]
        if advances:
            with lock_waits.limited(cursor):
                settle(cursor, dict.fromkeys(tasks, 0))
                charge_drawn(cursor, advances)
    return len(tasks)
