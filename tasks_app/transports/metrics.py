"""The counters of this process, and of processes without doors, for programs that watch the service.

They are for operators, by a token of theirs.
"""

from functools import partial

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse

from a2a.errors import TooManyCalls
from tasks_app import counters
from tasks_app.callers.strangers import count_failure
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoApart
from tasks_app.operators.tokens import find_token
from tasks_app.transports.http import find_origin
from tasks_app.upkeep.processes import read_counters

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus."""
CHALLENGE = 'Bearer realm="operators"'
ADVICE = "Send a token of an operator as Authorization: Bearer; `manage.py a2a operators token NAME` makes one.\n"


async def metrics(request: HttpRequest) -> HttpResponse:
    """Return the counters in the text format of Prometheus, or 401 without the token of an operator."""
    if request.method not in {"GET", "HEAD"}:
        return HttpResponse("use GET\n", status=405, content_type=MEDIA, headers={"Allow": "GET, HEAD"})
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        return _refuse(401)
    try:
        row = await bridge.ask(DoApart(partial(find_token, token.strip())))
        others = await bridge.ask(DoApart(read_counters)) if row else {}
    except (DatabaseError, InterfaceError):
        return HttpResponse("the database does not answer: see /readyz\n", status=503, content_type=MEDIA)
    if row is None:
        try:
            count_failure(find_origin(request))
        except TooManyCalls as error:
            return _refuse(429, str(error.retry_after))
        return _refuse(401)
    return HttpResponse(counters.text(others), content_type=MEDIA, headers={"Cache-Control": "no-store"})


def _refuse(status: int, retry_after: str = "") -> HttpResponse:
    headers = {"Retry-After": retry_after} if retry_after else {"WWW-Authenticate": CHALLENGE}
    return HttpResponse(ADVICE, status=status, content_type=MEDIA, headers=headers)
