"""The counters of this process, and of processes without doors, for programs that watch the service: in the text format
of Prometheus, or in JSON in the form of SPARC.

They are for operators, by a token of theirs.
"""

import time
from collections.abc import Mapping

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse

from a2a.errors import TooManyCalls
from a2a.states import TaskState
from a2a.types import Json
from tasks_app import counters
from tasks_app.callers.peers import peer_of
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.exchanges.recent import recent_calls
from tasks_app.exchanges.refusals import count_wrong
from tasks_app.operators.tokens import look_up
from tasks_app.process.health import count_unfinished
from tasks_app.transports.http import find_origin
from tasks_app.upkeep.processes import read_counters

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus."""
JSON, ANY = "application/json", "*/*"
CHALLENGE = 'Bearer realm="operators"'
ADVICE = "Send a token of an operator as Authorization: Bearer; `manage.py a2a operators token NAME` makes one.\n"


async def metrics(request: HttpRequest) -> HttpResponse:
    """Return the counters, in JSON where that is asked for, or 401 without the token of an operator."""
    if request.method not in {"GET", "HEAD"}:
        return HttpResponse("use GET\n", status=405, content_type=MEDIA, headers={"Allow": "GET, HEAD"})
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        return _refuse(401)
    try:
        row = await look_up(token.strip())
        others = await bridge.ask(DoApart(read_counters)) if row else {}
        active = await bridge.ask(DoApart(count_unfinished)) if row and wants_json(request) else None
    except (DatabaseError, InterfaceError):
        return HttpResponse("the database does not answer: see /readyz\n", status=503, content_type=MEDIA)
    if row is None:
        try:
            count_wrong(find_origin(request), peer_of(request))
        except TooManyCalls as error:
            return _refuse(429, str(error.retry_after))
        return _refuse(401)
    headers = {"Cache-Control": "no-store", "Vary": "Accept"}
    if active is not None:
        return JsonResponse(_members(others, active), headers=headers)
    return HttpResponse(counters.text(others), content_type=MEDIA, headers=headers)


def wants_json(request: HttpRequest) -> bool:
    """Return whether a request prefers JSON to text. Without a preference its own content type decides."""
    if request.get_preferred_type(["text/plain", JSON]) == JSON:
        return True
    return request.content_type == JSON and request.META.get("HTTP_ACCEPT", ANY) == ANY


def _members(others: Mapping[str, counters.Snapshot], active: int) -> Json:
    """Return the counters in the form of SPARC. Calls are those of this process, and tasks those of all."""
    calls, tasks = counters.calls.sums(others), counters.tasks.sums(others)
    recent = recent_calls.summary(time.monotonic())
    return {
        "requests": {
            "total": sum(calls.values()),
            "perSecond": recent.per_second,
            "errors": calls.get(("failed",), 0),
        },
        "tasks": {
            "created": tasks.get(("created",), 0),
            "completed": tasks.get((TaskState.COMPLETED,), 0),
            "failed": tasks.get((TaskState.FAILED,), 0),
            "active": active,
        },
        "performance": {
            "averageResponseTime": recent.average_ms,
            "p95ResponseTime": recent.p95_ms,
            "throughput": recent.answered_per_second,
        },
    }


def _refuse(status: int, retry_after: str = "") -> HttpResponse:
    headers = {"Retry-After": retry_after} if retry_after else {"WWW-Authenticate": CHALLENGE}
    return HttpResponse(ADVICE, status=status, content_type=MEDIA, headers=headers)
