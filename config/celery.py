"""The Celery application. Without CELERY_BROKER_URL nothing dials a broker: jobs are applied in the process."""

import os
import ssl

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("taskdesk")
app.autodiscover_tasks(related_name="jobs")


def verified(url: str) -> dict[str, object]:
    """Celery would accept any certificate of a rediss:// broker that is not told otherwise."""
    unsaid = url.startswith("rediss:") and "ssl_cert_reqs" not in url
    return {"broker_use_ssl": {"ssl_cert_reqs": ssl.CERT_REQUIRED}} if unsaid else {}


def settings_of_celery() -> dict[str, object]:
    """Of Celery's own names; what depends on the agents is added when a worker starts, in tasks_app.jobs."""
    return {
        "broker_url": settings.CELERY_BROKER_URL,
        "task_ignore_result": True,
        # RabbitMQ closes the channel of a message that is not acknowledged within half an hour, and Celery exits.
        "task_acks_late": settings.CELERY_BROKER_URL.startswith("redis"),
        "task_reject_on_worker_lost": True,
        "task_default_queue": "default",
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_soft_shutdown_timeout": 20,
        "broker_connection_retry_on_startup": True,
        # A worker outlives its broker: after Celery's hundred attempts it would end, with the exit code 0.
        "broker_connection_max_retries": None,
        "worker_enable_remote_control": False,
        **verified(settings.CELERY_BROKER_URL),
        "broker_transport_options": {"socket_timeout": 5, "socket_connect_timeout": 5, "socket_keepalive": True},
    }


app.add_defaults(settings_of_celery)
