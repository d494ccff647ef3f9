"""The ASGI application, for any server: `serve` runs it on uvicorn, `daphne config.asgi:application` works as well."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

stock = get_asgi_application()

from django.conf import settings  # noqa: E402

from tasks_app.asgi.application import Application  # noqa: E402  # needs Django set up
from tasks_app.asgi.handler import LeanHandler  # noqa: E402
from tasks_app.transports.call_log import CallLog  # noqa: E402

application: Application | CallLog = Application(LeanHandler(), stock)
if settings.A2A_LOG_CALLS:
    application = CallLog(application)
