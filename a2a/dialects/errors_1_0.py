"""Errors of A2A 1.0: their numbers, their HTTP statuses, and their JSON with an envelope and without."""

from a2a import errors
from a2a.errors import Error, InvalidParams
from a2a.language import Cell, Column
from a2a.types import Json

COLUMN: Column = {
    errors.ParseError: Cell(-32700),
    errors.InvalidRequest: Cell(-32600),
    errors.MethodNotFound: Cell(-32601),
    errors.InvalidParams: Cell(-32602),
    errors.IdempotencyConflict: Cell(-32602),
    errors.Internal: Cell(-32603),
    errors.TaskNotFound: Cell(-32001),
    errors.TaskNotCancelable: Cell(-32002),
    errors.PushNotSupported: Cell(-32003),
    errors.UnsupportedOperation: Cell(-32004),
    errors.TaskEnded: Cell(-32004, reason=errors.UnsupportedOperation.reason),
    errors.ContentTypeNotSupported: Cell(-32005),
    errors.InvalidAgentResponse: Cell(-32006),
    errors.ExtendedCardNotConfigured: Cell(-32007),
    errors.ExtensionSupportRequired: Cell(-32008),
    errors.VersionNotSupported: Cell(-32009),
    errors.SharedStreamNotFound: Cell(-32001, reason=errors.TaskNotFound.reason),
    errors.SharedStreamClosed: Cell(-32004, reason=errors.UnsupportedOperation.reason),
    errors.MemoryNotFound: Cell(-32001, reason=errors.TaskNotFound.reason),
    errors.WorkflowNotFound: Cell(-32001, reason=errors.TaskNotFound.reason),
    errors.PhaseRefused: Cell(-33001),
    errors.UnknownAgent: Cell(-38005),
    errors.BudgetExceeded: Cell(-38006),
    errors.Timeout: Cell(-38007),
    errors.RateLimited: Cell(-38008, 429),
    errors.Unauthenticated: Cell(-38009, 401),
    errors.ExpiredKey: Cell(-38009, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(-38010, 403),
    errors.PermissionDenied: Cell(-38011, 403),
    errors.Unavailable: Cell(-38013, 503),
}
"""The number of each error (A2A 1.0.1, 5.4), and its HTTP status where that is not 200 (docs/protocol.md#envelope).
Numbers from -38000 down are additions of this server. A2A has no words for the end of a task or of a key, nor for
shared streams."""
_PLAIN = frozenset(
    {errors.ParseError, errors.InvalidRequest, errors.MethodNotFound, errors.InvalidParams, errors.Internal}
)
"""Errors of JSON-RPC. They have `data` only if there are facts, while errors of A2A always have it (A2A 1.0.1, 9.5)."""
REST_STATUSES: dict[type[Error], tuple[int, str]] = {
    errors.ParseError: (400, "INVALID_ARGUMENT"),
    errors.InvalidRequest: (400, "INVALID_ARGUMENT"),
    errors.MethodNotFound: (404, "NOT_FOUND"),
    errors.InvalidParams: (400, "INVALID_ARGUMENT"),
    errors.IdempotencyConflict: (400, "INVALID_ARGUMENT"),
    errors.Internal: (500, "INTERNAL"),
    errors.TaskNotFound: (404, "NOT_FOUND"),
    errors.TaskNotCancelable: (400, "FAILED_PRECONDITION"),
    errors.PushNotSupported: (400, "FAILED_PRECONDITION"),
    errors.UnsupportedOperation: (400, "FAILED_PRECONDITION"),
    errors.TaskEnded: (400, "FAILED_PRECONDITION"),
    errors.ContentTypeNotSupported: (400, "INVALID_ARGUMENT"),
    errors.InvalidAgentResponse: (500, "INTERNAL"),
    errors.ExtendedCardNotConfigured: (400, "FAILED_PRECONDITION"),
    errors.ExtensionSupportRequired: (400, "FAILED_PRECONDITION"),
    errors.VersionNotSupported: (400, "FAILED_PRECONDITION"),
    errors.SharedStreamNotFound: (404, "NOT_FOUND"),
    errors.SharedStreamClosed: (400, "FAILED_PRECONDITION"),
    errors.MemoryNotFound: (404, "NOT_FOUND"),
    errors.WorkflowNotFound: (404, "NOT_FOUND"),
    errors.PhaseRefused: (400, "FAILED_PRECONDITION"),
    errors.UnknownAgent: (404, "NOT_FOUND"),
    errors.Timeout: (504, "DEADLINE_EXCEEDED"),
    errors.Unauthenticated: (401, "UNAUTHENTICATED"),
    errors.ExpiredKey: (401, "UNAUTHENTICATED"),
    errors.MissingScope: (403, "PERMISSION_DENIED"),
    errors.BudgetExceeded: (402, "FAILED_PRECONDITION"),
    errors.PermissionDenied: (403, "PERMISSION_DENIED"),
    errors.RateLimited: (429, "RESOURCE_EXHAUSTED"),
    errors.Unavailable: (503, "UNAVAILABLE"),
}
"""The HTTP status over REST and the gRPC name of each error (A2A 1.0.1, 5.4; docs/protocol.md#errors)."""


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` is a list of objects, each with its type (docs/protocol.md#errors)."""
    details = error_details(error)
    if error.row in _PLAIN and not error.facts:
        del details[0]
    return {"code": code, "message": error.full_message} | ({"data": details} if details else {})


def reason_of(error: Error) -> str:
    """Return the reason of an error in the words of A2A."""
    return COLUMN[error.row].reason or error.reason


def error_details(error: Error) -> list[Json]:
    """Return an ErrorInfo with the reason and the facts, and a BadRequest with the wrong fields, if there are any."""
    info: Json = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason_of(error)}
    info["domain"] = "a2a-protocol.org"
    details = [info | ({"metadata": error.facts} if error.facts else {})]
    if isinstance(error, InvalidParams) and error.violations:
        violations = [{"field": field, "description": description} for field, description in error.violations]
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})
    return details


def encode_rest_error(error: Error, status: int, name: str) -> Json:
    """Return the body of an error over REST."""
    return {"error": {"code": status, "status": name, "message": error.full_message, "details": error_details(error)}}
