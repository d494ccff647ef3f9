"""Values of requests that do not stand in their params: those of headers, and those that the door knows."""

from typing import Any

from msgspec.structs import replace

from a2a.batches import ExecuteBatch
from a2a.errors import InvalidParams, InvalidRequest
from a2a.language import Language
from a2a.money import HEADER as BUDGET
from a2a.money import parse_usd
from a2a.requests import (
    Describe,
    GetExtendedCard,
    Negotiate,
    Request,
    SendMessage,
    SendToSharedStream,
    with_delivery_language,
)
from a2a.workflows import ExecuteWorkflow
from tasks_app.transports.call import REQUEST_ID, Call

BEGIN_SEVERAL = (ExecuteBatch, ExecuteWorkflow, SendToSharedStream)
"""Requests that may begin any number of tasks. The budget of a call limits one task."""


def complete(call: Call, language: Language, kind: type[Request], request: Any) -> Any:
    """Add to a request the values that do not stand in its params. Raises InvalidRequest and InvalidParams."""
    if language.key_header and issubclass(kind, SendMessage):
        message_id = _key_of(call.metadata(language.key_header), language.key_header)
        request = replace(request, message=replace(request.message, message_id=message_id))
    if kind.streaming and call.batch:
        raise InvalidRequest(detail="a method that streams cannot be a member of a batch")
    if issubclass(kind, SendMessage) and (extensions := language.extensions(call.metadata)):
        request = replace(request, extensions=extensions)
    if issubclass(kind, SendMessage | Negotiate) and (text := call.metadata(BUDGET)) is not None:
        budget = _budget_of(text)
        request = replace(request, budget=budget if request.budget is None else min(budget, request.budget))
    if issubclass(kind, BEGIN_SEVERAL) and call.metadata(BUDGET) is not None:
        # Without a refusal the caller would believe in a limit that there is not.
        raise InvalidParams((BUDGET, "limits one task, and this call may begin several: leave it out"))
    if kind.changes and language.push:
        request = with_delivery_language(language.pushes_as or language.name, request)
    if kind.streaming:
        return request if (after := call.after()) is None else replace(request, after=after)
    if isinstance(request, GetExtendedCard):
        return replace(request, address=call.address())
    if isinstance(request, Describe):
        return replace(request, endpoint=call.endpoint.name, version=call.version, address=call.address())
    return request


def _budget_of(text: str) -> int:
    """Return the budget in a header. Raises InvalidParams."""
    try:
        return parse_usd(text)
    except ValueError as error:
        raise InvalidParams((BUDGET, str(error))) from None


def _key_of(text: str | None, header: str) -> str:
    """Return the id in a header. Raises InvalidParams if it is absent or malformed."""
    if not text:
        raise InvalidParams((header, "is required: the same call under the same id is done once"))
    if not REQUEST_ID.fullmatch(text):
        raise InvalidParams((header, "must have 1 to 128 letters, digits, dots, colons, hyphens and underscores"))
    return text
