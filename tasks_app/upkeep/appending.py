"""Appends of the sweep: to one task at a time, so that a task whose rows are damaged keeps no other from its end."""

import logging

from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.locks import LockRefused
from tasks_app.event_log import Append, Appended

log = logging.getLogger(__name__)


def append_alone(item: Append) -> bool:
    """Append to a task, and return whether its conditions held. Raises LockRefused, and errors of a database that is
    away.

    Any other error belongs to this task: its log may have an event too many after an uneven restoration. It is logged,
    and the next sweep tries again.
    """
    try:
        # No patience: other tasks should not wait for the lock on this one.
        return isinstance(bridge.do(item, patience=0), Appended)
    except (LockRefused, *AWAY):
        raise
    except Exception:
        log.exception("task %s: the sweep cannot append to it; `manage.py a2a doctor` examines its log", item.task_id)
        return False
