"""The Celery application. Without CELERY_BROKER_URL nothing dials a broker: jobs are applied in the process."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("taskdesk")
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)
app.autodiscover_tasks(related_name="jobs")
