"""Celery's door: ids in, nothing out."""

from celery import shared_task

from tasks_app.dispatch import WAKE
from tasks_app.runner import runner


@shared_task(name=WAKE, ignore_result=True)
def wake() -> None:
    """Claims runnable tasks until there are none or the slots are full. One message does not mean one task."""
    runner.drain()
