"""The Celery application. Without CELERY_BROKER_URL no broker is dialled: jobs are applied in the process."""

import os

from celery import Celery
from django.conf import settings

from tasks_app.hints.broker import time_limits, tls_options

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

ANSWER_SECONDS = 5
"""Seconds that a worker waits for an answer of its broker: one that hangs must not keep it from stopping."""
app = Celery("taskdesk")
app.autodiscover_tasks(related_name="jobs")


def celery_settings() -> dict[str, object]:
    """Return the settings of Celery. Queues depend on the agents: tasks_app.jobs adds them when a worker starts."""
    return {
        "broker_url": settings.CELERY_BROKER_URL,
        "task_ignore_result": True,
        # Not on RabbitMQ: it closes the channel of a message that is not acknowledged within half an hour, and Celery
        # exits.
        "task_acks_late": settings.CELERY_BROKER_URL.startswith("redis"),
        "task_reject_on_worker_lost": True,
        "task_default_queue": "default",
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_soft_shutdown_timeout": 20,
        "broker_connection_retry_on_startup": True,
        # By default a worker gives up after a hundred attempts and ends with exit code 0, so no supervisor restarts it.
        "broker_connection_max_retries": None,
        # A Redis that becomes a replica, or is full, answers with an error. By default a worker ends with it, and so do
        # its runs, and it cannot start again before Redis takes writes.
        "broker_channel_error_retry": True,
        "worker_enable_remote_control": False,
        "broker_use_ssl": tls_options(settings.CELERY_BROKER_URL) or False,
        "broker_transport_options": time_limits(ANSWER_SECONDS),
    }


app.add_defaults(celery_settings)
