"""The answer of an endpoint when the database does not do its work in time."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse

log = logging.getLogger(__name__)

RETRY_AFTER = 2
"""Seconds after which a client may try again."""
BODY = {
    "error": "temporarily_unavailable",
    "error_description": "The database did not answer in time. Wait as long as Retry-After says, then ask again.",
}
View = Callable[..., HttpResponse]


def answer_outages(view: View) -> View:
    """Return the view, which answers 503 in JSON while the database is away or locked."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            log.error("%s failed: %s", request.path, error, exc_info=error)
            headers = {"Retry-After": str(RETRY_AFTER), "Cache-Control": "no-store"}
            return JsonResponse(BODY, status=503, headers=headers)

    return answer
