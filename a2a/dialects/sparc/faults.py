"""The errors of SPARC by their numbers, and their objects: the names of the numbers as messages, and `data` that is
always an object."""

from msgspec import UNSET, Struct, UnsetType

from a2a import errors
from a2a.dialects import v0_2
from a2a.errors import Error, InvalidParams, InvalidRequest, TaskNotFound
from a2a.language import Column
from a2a.types import Json

_OWN = (errors.MemoryNotFound, errors.WorkflowNotFound)
"""Errors whose reasons A2A lacks. The methods that have them are SPARC's own."""
COLUMN: Column = v0_2.DIALECT.column | {error: v0_2.DIALECT.column[error]._replace(reason="") for error in _OWN}
"""The numbers of A2A 0.2."""
NAMES: dict[type[Error], str] = {
    errors.ParseError: "Parse error",
    errors.InvalidRequest: "Invalid Request",
    errors.MethodNotFound: "Method not found",
    errors.InvalidParams: "Invalid params",
    errors.Internal: "Internal error",
    errors.ExtendedCardNotConfigured: "AuthenticatedExtendedCardNotConfiguredError",
    errors.ExpiredKey: "UnauthenticatedError",
    errors.PhaseRefused: "SPARCPhaseError",
    errors.PushNotSupported: "PushNotificationNotSupportedError",
}
"""The messages of errors that are not made from the name of their class."""
REQUIRED = "is required"


class ErrorData(Struct, rename="camel"):
    """The `data` of an error. Facts of the error, such as taskId, are further members."""

    details: str
    reason: str
    request_id: str | int | float | UnsetType | None = UNSET


class Fault(Struct):
    """An error of SPARC. `data` is absent only if the body cannot be read."""

    code: int
    message: str
    data: ErrorData | UnsetType = UNSET


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. The envelope adds the id of the call to `data`."""
    facts = {name: fact for name, fact in error.facts.items() if name != "detail"}
    data: Json = {"details": details(error), "reason": COLUMN[error.row].reason or error.reason, **facts}
    if isinstance(error, InvalidParams) and error.violations:
        data["violations"] = [{"field": field, "description": text} for field, text in error.violations]
    return {"code": code, "message": NAMES.get(error.row, f"{error.row.__name__}Error"), "data": data}


def details(error: Error) -> str:
    """Return a sentence about the error."""
    if "detail" in error.facts:
        return error.facts["detail"]
    if isinstance(error, TaskNotFound):
        return "Task not found or expired"
    return f"{error.message}: {error.detail}" if error.detail else error.message


def words(error: Error) -> Error:
    """Return an operation's error in the words of SPARC, in which a request without a required member is invalid."""
    if isinstance(error, InvalidParams) and error.violations and error.violations[0][1] == REQUIRED:
        field = error.violations[0][0]
        return InvalidRequest(detail=f"Missing required '{field}' parameter", **error.facts)
    return error
