"""The pages for health, which need no key, and the answers at paths without a view and of pages that fail."""

import asyncio
import logging
import sys

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import bad_request, page_not_found, server_error

from a2a.dialects.errors_1_0 import encode_rest_error
from a2a.errors import MethodNotFound
from tasks_app import __version__
from tasks_app.database.errors import CANNOT_NOW, RETRY_SECONDS, log_failure, may_pass
from tasks_app.process.health import loads, reports

log = logging.getLogger(__name__)
NOTHING_HERE = "there is nothing at this path; docs/clients.md lists the paths"
OTHER_HOST = "This server has no such host name: call it by a name in its ALLOWED_HOSTS.\n"
SOCKETS_ONLY = "this path is for WebSocket connections, and no upgrade was asked for; docs/websocket.md describes them"


async def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200: the process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if the process can do its work, even with delays, or else 503; with the reasons."""
    report = await reports.latest()
    status = "unavailable" if report.problems else "degraded" if report.lags else "ok"
    body = {"status": status, "reasons": [*report.problems, *report.lags]}
    return JsonResponse(body, status=503 if report.problems else 200)


async def health(request: HttpRequest) -> HttpResponse:
    """Return what readyz() returns in the form of SPARC: with the version, the uptime and numbers of the process."""
    report, load = await asyncio.gather(reports.latest(), loads.latest())
    status = "unhealthy" if report.problems else "degraded" if report.lags else "healthy"
    body = {
        "status": status,
        "version": __version__,
        "uptime": load.vitals.uptime,
        "metrics": {
            "activeConnections": load.vitals.connections,
            "activeTasks": load.active_tasks,
            "memoryUsage": load.vitals.memory_mb,
            "cpuUsage": load.vitals.cpu_percent,
        },
        "reasons": [*report.problems, *report.lags],
    }
    return JsonResponse(body, status=503 if report.problems else 200)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer at a path without a view: a page for browsers, and an error in the form of REST for all others."""
    if "text/html" in request.META.get("HTTP_ACCEPT", ""):
        return page_not_found(request, exception)
    error = MethodNotFound(detail=SOCKETS_ONLY if request.path_info.rstrip("/").endswith("/ws") else NOTHING_HERE)
    return JsonResponse(
        encode_rest_error(error, 404, "NOT_FOUND"), status=404, headers={"X-Content-Type-Options": "nosniff"}
    )


def refuse(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses: with a sentence about its host name, or about the filter that a list of the
    admin does not have."""
    match exception:
        case DisallowedHost():
            sentence = OTHER_HOST
        case DisallowedModelAdminLookup():  # Its text names the parameter.
            sentence = f"{exception}: open the list without parameters. Its page shows the filters that there are.\n"
        case _:
            return bad_request(request, exception)
    return HttpResponse(sentence, status=400, content_type="text/plain; charset=utf-8")


def fail(request: HttpRequest) -> HttpResponse:
    """Answer a request whose view has raised an error: with 503 if the database is away or takes no writes, else 500.

    Django calls this while it handles the error.
    """
    if not may_pass(sys.exception()):
        return server_error(request)
    log_failure(log, "%s %s failed", request.method, request.path)
    response = HttpResponse(
        f"{CANNOT_NOW} Try again in {RETRY_SECONDS} s.\n",
        status=503,
        content_type="text/plain; charset=utf-8",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
    response._has_been_logged = True  # type: ignore[attr-defined]  # Otherwise Django logs it with a traceback.
    return response
