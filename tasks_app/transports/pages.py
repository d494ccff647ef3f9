"""Health, which anybody may ask for, and the answer where there is nothing."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import page_not_found

from a2a.dialects.errors_1_0 import encode_rest_error
from a2a.errors import MethodNotFound
from tasks_app.process.health import reports


async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """The process can do its work, if not always in time; else 503 and why not."""
    report = await reports.latest()
    status = "unavailable" if report.problems else "degraded" if report.lags else "ok"
    said = {"status": status, "reasons": [*report.problems, *report.lags]}
    return JsonResponse(said, status=503 if report.problems else 200)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a path at which there is nothing: a page for browsers, an error in the form of REST for all others."""
    if "text/html" in request.META.get("HTTP_ACCEPT", ""):
        return page_not_found(request, exception)
    error = MethodNotFound(detail="there is nothing at this path; docs/clients.md lists the paths")
    return JsonResponse(
        encode_rest_error(error, 404, "NOT_FOUND"), status=404, headers={"X-Content-Type-Options": "nosniff"}
    )
