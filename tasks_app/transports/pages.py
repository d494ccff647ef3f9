"""Health: what anybody may get."""

from django.http import HttpRequest, HttpResponse, JsonResponse

from tasks_app.health import reports


async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """The process can do its work, if not always in time; else 503 and why not."""
    report = await reports.latest()
    status = "unavailable" if report.problems else "degraded" if report.lags else "ok"
    said = {"status": status, "reasons": [*report.problems, *report.lags]}
    return JsonResponse(said, status=503 if report.problems else 200)
