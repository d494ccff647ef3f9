"""Cards and health: what anybody may get."""

import hashlib
from functools import lru_cache

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from a2a.agents import registry
from a2a.cards import describe
from a2a.dialects.hybrid import WellKnown, card_shape
from tasks_app.health import lags, problems
from tasks_app.transports.http import version_of

MAX_AGE = 60
"""Seconds for which a card may be used without asking again."""


async def card(request: HttpRequest, file: WellKnown, agent: str | None = None) -> HttpResponse:
    """The card of an agent, in the shape of the path and version (fact sheet 6.1)."""
    if request.method not in {"GET", "HEAD"}:
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    name = agent or settings.A2A_DEFAULT_AGENT
    base = settings.A2A_PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
    url = f"{base}/agents/{name}/jsonrpc" if agent else f"{base}/jsonrpc"
    found = _bytes_of(name, url, agent is None, file, (version_of(request) or "")[:32])
    if found is None:
        return JsonResponse({"error": f"there is no agent {name[:64]}"}, status=404)
    body, etag = found
    headers = {"ETag": etag, "Cache-Control": f"public, max-age={MAX_AGE}", "Vary": "A2A-Version"}
    if etag in {tag.strip().removeprefix("W/") for tag in request.META.get("HTTP_IF_NONE_MATCH", "").split(",")}:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(body, content_type="application/json", headers=headers)


@lru_cache(maxsize=256)
def _bytes_of(name: str, url: str, whole: bool, file: WellKnown, version: str) -> tuple[bytes, str] | None:
    """The card and its ETag; agents do not change while the process lives."""
    agent = registry.get(name)
    if agent is None:
        return None
    body = orjson.dumps(card_shape(file, version)(describe(agent, url, registry if whole else ())))
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


async def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> HttpResponse:
    """The process can do its work, if not always in time; else 503 and why not."""
    reasons, late = await problems(), lags()
    status = "unavailable" if reasons else "degraded" if late else "ok"
    return JsonResponse({"status": status, "reasons": [*reasons, *late]}, status=503 if reasons else 200)
