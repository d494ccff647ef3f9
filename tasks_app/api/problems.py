"""Errors of the operators' API as problem details (RFC 9457): what is wrong, where, and what to do."""

import logging
import math
from http import HTTPStatus
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import set_rollback

from tasks_app.callers.wrong_values import WrongValue
from tasks_app.database.errors import CANNOT_NOW, RETRY_SECONDS, log_failure, may_pass
from tasks_app.operators.refusals import sentence_of

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
ADVICE = {
    400: "Correct the members that `errors` names, and send the request again.",
    401: "Send `Authorization: Bearer` with an operator's token: `manage.py a2a operators token NAME` makes one.",
    403: "Do what `detail` says, or ask an operator who may do this.",
    404: "List the resource to find the row. Rows of other tenants are not found either.",
    405: "/api/v1/openapi.json lists the verbs of every resource.",
    406: "Leave `Accept` out, or have it allow `application/json`.",
    408: "Send the whole body at once.",
    409: "Read the row as it is now.",
    413: "Send less in one body: its limit is the setting A2A_BODY_BYTES of the server.",
    429: "Wait for as long as `Retry-After` says.",
    415: "Send JSON in UTF-8, with `Content-Type: application/json` and without a `Content-Encoding`.",
    503: "Wait for as long as `Retry-After` says. /readyz says what is wrong.",
}
"""Advice about an error, by its status."""


class Refused(APIException):
    """Raised for an act that cannot be done to a row in its present state. The sentence says why."""

    status_code = 409
    default_detail = "The act cannot be done."
    default_code = "refused"


class DatabaseAway(APIException):
    """Raised in place of an error of a database that is away, or that takes no writes."""

    status_code = 503
    default_detail = CANNOT_NOW
    default_code = "unavailable"
    wait = RETRY_SECONDS


class NotJson(exceptions.ParseError):
    """Raised for a body that is no JSON, so that no member of it can be named."""

    advice = "Send one JSON object in UTF-8."


class NoPermission(exceptions.PermissionDenied):
    """Raised for an act or a list that needs a permission of Django's, which the operator's roles do not give."""

    advice = (
        "Ask an administrator for a role with this permission: `manage.py a2a users role NAME ROLE`. "
        "The command replaces all roles, so name the former ones too."
    )


class OutOfReach(exceptions.PermissionDenied):
    """Raised for an act on rows of a tenant, of which the operator may see none, or those of some agents alone."""

    advice = (
        "Ask an administrator for a reach of the tenant: `manage.py a2a users reach NAME --tenant TENANT`. "
        "The command replaces the whole reach, so name the former tenants and agents too."
    )


def refuse_by(error: Exception) -> Refused:
    """Return the refusal whose sentence is that of an error."""
    return Refused(sentence_of(error))


def refuse_body(error: ValueError) -> exceptions.ValidationError:
    """Return the error of a body whose values an act refuses. It says where, if one value alone is wrong."""
    sentence = sentence_of(error)
    return exceptions.ValidationError({error.member: sentence} if isinstance(error, WrongValue) else sentence)


def check_done(is_done: bool, what: str, state: str) -> None:
    """Check that a verb changed the row. Raises Refused, which says the state that it was in."""
    if not is_done:
        raise Refused(f"The {what} is {state}.")


def answer_problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the problem of an exception; None for a fault of ours, which Django then logs and answers with 500."""
    if isinstance(error, Http404):
        error = exceptions.NotFound("There is no such row, or it was removed, or deleted because of its age.")
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    elif may_pass(error):
        log_failure(log, "%s %s failed", context["request"].method, context["request"].path)
        error = DatabaseAway()
    if not isinstance(error, APIException):
        return None
    set_rollback()
    status = error.status_code
    problem = _begin_problem(status)
    if isinstance(error, exceptions.ValidationError):
        problem["detail"] = "The request is not valid."
        problem["errors"] = list(list_errors(error.detail))
    else:
        problem["detail"] = str(error.detail)
    problem["instance"] = context["request"].path
    if advice := getattr(error, "advice", ADVICE.get(status)):
        problem["advice"] = advice
    headers = {"WWW-Authenticate": header} if (header := getattr(error, "auth_header", "")) else {}
    headers |= {"Retry-After": str(math.ceil(wait))} if (wait := getattr(error, "wait", None)) else {}
    return Response(problem, status=status, headers=headers, content_type=MEDIA_TYPE)


def refuse_unread(sentence: str, status: int, path: str) -> HttpResponse:
    """Return the problem of a request that is refused before this API sees it, such as one with too large a body."""
    problem = _begin_problem(status) | {"detail": sentence, "instance": path}
    problem |= {"advice": advice} if (advice := ADVICE.get(status)) else {}
    return HttpResponse(orjson.dumps(problem), status=status, content_type=MEDIA_TYPE)


def _begin_problem(status: int) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}


def list_errors(detail: Any, where: str = "") -> Any:
    """Yield each error of a validation with the member that it is about, as a JSON pointer (RFC 6901)."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from list_errors(inner, where if name == "non_field_errors" else f"{where}/{name}")
    elif isinstance(detail, list):
        for inner in detail:
            yield from list_errors(inner, where)
    else:
        yield {"where": where, "what": str(detail)}
