"""The ASGI application, for any server: `serve` runs it on uvicorn, `daphne config.asgi:application` works as well."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

stock = get_asgi_application()

from django.conf import settings  # noqa: E402

from tasks_app.asgi.application import App, Application, Http, Sockets  # noqa: E402  # needs Django set up
from tasks_app.asgi.cors import Cors  # noqa: E402
from tasks_app.asgi.handler import LeanHandler  # noqa: E402
from tasks_app.transports.call_log import CallLog  # noqa: E402
from tasks_app.transports.floods import refuse_early  # noqa: E402
from tasks_app.transports.http_requests import Request  # noqa: E402
from tasks_app.transports.unread import refuse_unread  # noqa: E402
from tasks_app.transports.websocket import WebSocket  # noqa: E402

if settings.A2A_SLACK:
    from tasks_app.slack.responder import responder
    from tasks_app.zones.slack import ask_for_slack

    responder.ask = ask_for_slack

stock.request_class = Request
http: App = Http(Cors(LeanHandler(), settings.A2A_CORS_ORIGINS), stock)
if settings.A2A_LOG_CALLS:
    http = CallLog(http)
# The log has a line for each call, so then every call goes through the door.
early = () if settings.A2A_LOG_CALLS else (refuse_early, refuse_unread)
application = Application({"http": http, "websocket": Sockets(WebSocket.as_asgi())}, *early)
"""The doors of this server by the types of ASGI scopes. A further one is a row."""
