"""The limit of wrong secrets, codes and tokens by address, shared with wrong keys of calls.

They are too long to guess. The limit keeps guesses from costing the database more than a few lookups.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from a2a.errors import TooManyCalls
from tasks_app.callers.peers import origin_of, peer_of
from tasks_app.limits import strangers

View = Callable[..., Any]


def limit_wrong(view: View) -> View:
    """Return the view behind the limit."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        origin = origin_of(peer_of(request), request.headers.get)
        try:
            strangers.check_failures(origin)
            response: HttpResponse = view(request, *args, **kwargs)
            if response.status_code == 401 or b'"invalid_grant"' in response.content:
                strangers.count_failure(origin)
        except TooManyCalls as error:
            return _refuse(error)
        return response

    return answer


def _refuse(error: TooManyCalls) -> HttpResponse:
    body = {
        "error": "temporarily_unavailable",
        "error_description": "Your address sent too many wrong requests. Wait as long as Retry-After says.",
    }
    headers = {"Retry-After": str(error.retry_after), "Cache-Control": "no-store"}
    return JsonResponse(body, status=429, headers=headers)
