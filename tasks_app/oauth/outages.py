"""The answer of an endpoint when the database does not do its work in time."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import InternalError
from django.http import HttpRequest, HttpResponse, JsonResponse

from tasks_app.database.errors import MAY_PASS, RETRY_SECONDS, log_failure, may_pass

log = logging.getLogger(__name__)
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
        except (*MAY_PASS, InternalError) as error:
            if not may_pass(error):
                raise
            log_failure(log, "%s %s failed", request.method, request.path)
            headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
            return JsonResponse(BODY, status=503, headers=headers)

    return answer
