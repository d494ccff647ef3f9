"""The pages for health, which need no key, and the answer at paths without a view."""

import asyncio

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import page_not_found

from a2a.dialects.errors_1_0 import encode_rest_error
from a2a.errors import MethodNotFound
from tasks_app import __version__
from tasks_app.process.health import loads, reports

NOTHING_HERE = "there is nothing at this path; docs/clients.md lists the paths"
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
