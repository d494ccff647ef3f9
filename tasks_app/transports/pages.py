"""Health: what anybody may get."""

import asyncio

from django.http import HttpRequest, HttpResponse, JsonResponse

from tasks_app.health import lags, problems


async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """The process can do its work, if not always in time; else 503 and why not."""
    reasons, late = await asyncio.gather(problems(), lags())
    status = "unavailable" if reasons else "degraded" if late else "ok"
    return JsonResponse({"status": status, "reasons": [*reasons, *late]}, status=503 if reasons else 200)
