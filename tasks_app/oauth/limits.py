"""The limits of requests to the OAuth server.

Wrong secrets, codes and tokens are limited by address, together with wrong keys of calls. Right ones are too long to
guess: the limit keeps guesses from costing the database more than a few lookups. Requests with valid ones spend from
the rate limits of the client's principal, as its calls do. All requests count among the calls of their address.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, JsonResponse

from a2a.errors import TooManyCalls
from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers.access import caller_for
from tasks_app.callers.peers import origin_in, peer_in
from tasks_app.exchanges.refusals import count_wrong, tally
from tasks_app.limits import strangers
from tasks_app.limits.rate_limits import limits
from tasks_app.models import OAuthClient

View = Callable[..., Any]


def limit_wrong(view: View) -> View:
    """Return the view behind the limits by address. A view that answers wrong tokens with 200 counts them itself."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        origin, peer = origin_in(request.META), peer_in(request.META)
        try:
            _check(origin, peer)
            response: HttpResponse = view(request, *args, **kwargs)
            if response.status_code == 401 or b'"invalid_grant"' in response.content:
                count_wrong(origin, peer)
        except TooManyCalls as error:
            return _refuse(error)
        return response

    return answer


def _check(origin: str, peer: str | None) -> None:
    """Check that the address may make the request. Raises TooManyCalls."""
    try:
        strangers.check_calls(origin)
        strangers.check_failures(origin)
    except TooManyCalls:
        tally.count(peer, 429, has_exchange=False)
        raise


def spend(client: OAuthClient, cost: int, peer: str | None) -> None:
    """Take the cost of a request, in units, out of the buckets of the client's principal. Raises TooManyCalls."""
    caller = caller_for(client.principal, frozenset(), credential=f"oauth:{client.pk}")
    try:
        async_to_sync(limits.spend)(caller, cost)  # On the loop of the doors: the buckets are used there only.
    except TooManyCalls as error:
        refused_calls.count(caller, error.reason, peer)
        raise


def _refuse(error: TooManyCalls) -> HttpResponse:
    body = {
        "error": "temporarily_unavailable",
        "error_description": f"The limit of {error.facts['limit']} is reached. Wait as long as Retry-After says.",
    }
    headers = {"Retry-After": str(error.retry_after), "Cache-Control": "no-store"}
    return JsonResponse(body, status=429, headers=headers)
