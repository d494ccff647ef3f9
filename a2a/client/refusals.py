"""The errors of a server, read from its answers.

The class of an error follows from its reason, else from its number, else from the fixed sentence of the protocol. The
HTTP status counts only for an answer without any of these, because versions have different statuses for one error.
Numbers are those of A2A, unless the language of the call has its own.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from a2a.client import errors
from a2a.client.errors import REASONS, ServerError
from a2a.client.http import Answer
from a2a.dialects.errors_1_0 import COLUMN
from a2a.language import Column


def codes_of(column: Column) -> dict[int, str]:
    """Return the reason of each number in a column of the error matrix. If errors share one, it is that of the
    first."""
    return {cell.number: error.reason for error, cell in reversed(column.items())}


class Numbers(Struct, frozen=True, kw_only=True):
    """The numbers by which a language tells its errors apart."""

    codes: Mapping[int, str]
    """The reason of each code that only one error has."""
    statuses: Mapping[int, str] = {}
    """The reason of an HTTP status, for errors that share a code."""


A2A = Numbers(codes=codes_of(COLUMN))
_NUMBERS = {error.reason: cell.number for error, cell in COLUMN.items()}
_SENTENCES = tuple((error.sentence.lower(), error.reason) for error in COLUMN)
_BY_STATUS: dict[int, type[ServerError]] = {
    401: errors.Unauthenticated,
    402: errors.BudgetExceeded,
    403: errors.MissingScope,
    409: errors.TaskNotCancelable,
    413: errors.InvalidRequest,
    415: errors.ContentTypeNotSupported,
    422: errors.InvalidParams,
    429: errors.RateLimited,
    500: errors.Internal,
    501: errors.UnsupportedOperation,
    503: errors.Unavailable,
}
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,62}")
"""The form of a reason (google.rpc.ErrorInfo). Any other text is none, because callers show reasons."""
_WORDS = 300
"""Characters of a server's message that an error shows."""


def of_rpc(error: Any, answer: Answer | None, place: str, numbers: Numbers = A2A) -> ServerError:
    """Return the error of an envelope."""
    wire = error if isinstance(error, dict) else {"message": str(error)}
    details = wire.get("data")
    return _error(wire.get("code"), wire.get("message"), details, answer, place, numbers)


def of_rest(answer: Answer, place: str) -> ServerError:
    """Return the error of an answer without an envelope."""
    wire = parsed(answer)
    inner = wire.get("error") if isinstance(wire, dict) else None
    if isinstance(inner, dict):
        # 1.0 numbers its errors by HTTP, and 0.x beside `error` by JSON-RPC.
        return _error(wire.get("code"), inner.get("message"), inner.get("details"), answer, place)
    if isinstance(wire, dict) and {"code", "type", "message"} & wire.keys():
        return _error(wire.get("code"), wire.get("message"), wire.get("data", wire), answer, place)
    return of_status(answer, place)


def of_status(answer: Answer, place: str) -> ServerError:
    """Return the error of an answer that has only a status."""
    kind = _kind_of(answer.status)
    words = answer.body[:_WORDS].decode(errors="replace").strip() if answer.media.startswith("text/plain") else ""
    error = kind(f"the server answered with status {answer.status}{': ' + words if words else ''}", where=place)
    error.reason = kind.reason or f"HTTP_{answer.status}"
    error.code = _NUMBERS.get(error.reason)
    _add_status(error, answer)
    return error


def _kind_of(status: int) -> type[ServerError]:
    return _BY_STATUS.get(status, errors.UnexpectedStatus)


def _by_sentence(message: str) -> str | None:
    return next((reason for sentence, reason in _SENTENCES if message.startswith(sentence)), None)


def in_envelope(answer: Answer) -> dict[str, Any] | None:
    """Return the envelope of an answer; None if it has none."""
    wire = parsed(answer)
    return wire if isinstance(wire, dict) and ("error" in wire or "result" in wire or "jsonrpc" in wire) else None


def _error(
    code: Any, message: Any, details: Any, answer: Answer | None, place: str, numbers: Numbers = A2A
) -> ServerError:
    number = code if isinstance(code, int) else None
    reason, status = _reason(details), answer.status if answer else 200
    by_code, by_status = numbers.codes.get(number or 0), numbers.statuses.get(status)
    names = (reason, by_code, _by_sentence(str(message).lower()), by_status)
    kind = next((REASONS[name] for name in names if name in REASONS), None)
    if kind is None:
        kind = _BY_STATUS.get(status, ServerError)
    error = kind(f"{message or 'the server refused the call'}{_explanation(details)}"[:_WORDS], where=place)
    error.reason = reason or kind.reason or (f"HTTP_{answer.status}" if answer and number is None else f"CODE_{number}")
    # REST of 1.0 has no numbers of its own.
    error.code = _NUMBERS.get(error.reason) if number is None else number
    error.details, error.retry_after = details, _retry_after(details)
    if answer is not None:
        _add_status(error, answer)
    return error


def _explanation(details: Any) -> str:
    """Return the sentence in the details, behind a colon, of an error whose message is a name, as in SPARC."""
    sentence = details.get("details") if isinstance(details, dict) else None
    return f": {sentence}" if isinstance(sentence, str) and sentence else ""


def _add_status(error: ServerError, answer: Answer) -> None:
    """Add what HTTP says about an error. Its status alone says whether an error without a class may be repeated."""
    error.status = answer.status
    if answer.retry_after is not None:
        error.retry_after = answer.retry_after
    if not type(error).reason:
        error.retryable = answer.status >= 500


def _retry_after(details: Any) -> float | None:
    """Return the seconds to wait that the details name; None if they name none.

    On a socket and in a batch no header has them.
    """
    for item in details if isinstance(details, list) else [details]:
        if not isinstance(item, dict):
            continue
        for facts in (item, item.get("metadata")):
            wait = facts.get("retryAfter") if isinstance(facts, dict) else None
            if re.fullmatch(r"[0-9]{1,9}", str(wait), re.ASCII):
                return float(str(wait))
    return None


def _reason(details: Any) -> str | None:
    """Return the reason in the details: in a list of typed objects (1.0), in an object, or as a class name."""
    for item in details if isinstance(details, list) else [details]:
        if isinstance(item, dict):
            if isinstance(item.get("reason"), str) and _REASON.fullmatch(item["reason"]):
                return str(item["reason"])
            if isinstance(item.get("type"), str) and item["type"].endswith("Error"):
                reason = _upper_snake(item["type"].removesuffix("Error"))
                return reason if _REASON.fullmatch(reason) else None
    return None


def _upper_snake(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).lstrip("_").upper()


def parsed(answer: Answer) -> Any:
    """Return the JSON of an answer; None if it is not JSON."""
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return None
