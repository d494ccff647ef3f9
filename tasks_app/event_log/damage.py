"""Damaged tasks, which no worker can claim: they are set aside for a time."""

import logging
from datetime import timedelta

from django.db.models import Exists, OuterRef

from a2a.states import RUNNABLE
from tasks_app import clock
from tasks_app.models import Event, Task

log = logging.getLogger(__name__)
ASIDE = timedelta(hours=1)
"""The time after which a damaged task is offered again."""
MOST_DAMAGED = 200
"""Damaged tasks that are set aside together."""


def set_aside_damaged() -> None:
    """Offer runnable tasks later whose log has an event after their last one, as after an uneven restoration.

    Each claim that chooses such a task fails, and with it the claim of all others. Only a claim that was refused looks
    for them, because the search reads all runnable tasks.
    """
    later = Event.objects.filter(task_id=OuterRef("pk"), seq__gt=OuterRef("last_seq"))
    damaged = Task.objects.filter(Exists(later), state__in=[state.value for state in RUNNABLE])
    for task_id in damaged.values_list("pk", flat=True)[:MOST_DAMAGED]:
        Task.objects.filter(pk=task_id).update(not_before=clock.shared() + ASIDE)
        log.error("task %s has an event after its last one and cannot be claimed; see `manage.py a2a doctor`", task_id)
