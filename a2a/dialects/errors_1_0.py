"""Errors of A2A 1.0: their numbers, their HTTP statuses, and their JSON with an envelope and without."""

from a2a import errors
from a2a.errors import Error, InvalidParams
from a2a.types import Json

CODES: dict[type[Error], int] = {
    errors.ParseError: -32700,
    errors.InvalidRequest: -32600,
    errors.MethodNotFound: -32601,
    errors.InvalidParams: -32602,
    errors.IdempotencyConflict: -32602,
    errors.Internal: -32603,
    errors.TaskNotFound: -32001,
    errors.TaskNotCancelable: -32002,
    errors.PushNotSupported: -32003,
    errors.UnsupportedOperation: -32004,
    errors.ContentTypeNotSupported: -32005,
    errors.InvalidAgentResponse: -32006,
    errors.ExtendedCardNotConfigured: -32007,
    errors.ExtensionSupportRequired: -32008,
    errors.VersionNotSupported: -32009,
    errors.UnknownAgent: -38005,
    errors.BudgetExceeded: -38006,
    errors.Unauthenticated: -38009,
    errors.MissingScope: -38010,
    errors.PermissionDenied: -38011,
    errors.RateLimited: -38008,
    errors.Unavailable: -38013,
}
"""The number of each error (A2A 1.0.1, 5.4). Numbers from -38000 down are additions of this server."""
_PLAIN = frozenset(
    {errors.ParseError, errors.InvalidRequest, errors.MethodNotFound, errors.InvalidParams, errors.Internal}
)
"""Errors of JSON-RPC. They have `data` only if there are facts, while errors of A2A always have it (A2A 1.0.1, 9.5)."""
STATUSES: dict[type[Error], int] = {
    errors.Unauthenticated: 401,
    errors.InvalidKey: 401,
    errors.MissingScope: 403,
    errors.PermissionDenied: 403,
    errors.RateLimited: 429,
    errors.TooManyCalls: 429,
    errors.Unavailable: 503,
}
"""HTTP statuses of single calls over JSON-RPC. All other errors have status 200 (docs/protocol.md#envelope)."""
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
    errors.ContentTypeNotSupported: (400, "INVALID_ARGUMENT"),
    errors.InvalidAgentResponse: (500, "INTERNAL"),
    errors.ExtendedCardNotConfigured: (400, "FAILED_PRECONDITION"),
    errors.ExtensionSupportRequired: (400, "FAILED_PRECONDITION"),
    errors.VersionNotSupported: (400, "FAILED_PRECONDITION"),
    errors.UnknownAgent: (404, "NOT_FOUND"),
    errors.Unauthenticated: (401, "UNAUTHENTICATED"),
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
    if type(error) in _PLAIN and not error.facts:
        del details[0]
    return {"code": code, "message": error.message} | ({"data": details} if details else {})


def error_details(error: Error) -> list[Json]:
    """Return an ErrorInfo with the reason and the facts, and a BadRequest with the wrong fields, if there are any."""
    info: Json = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": error.reason}
    info["domain"] = "a2a-protocol.org"
    details = [info | ({"metadata": error.facts} if error.facts else {})]
    if isinstance(error, InvalidParams) and error.violations:
        violations = [{"field": field, "description": description} for field, description in error.violations]
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})
    return details


def encode_rest_error(error: Error, status: int, name: str) -> Json:
    """Return the body of an error over REST."""
    detail = error.facts.get("detail")
    message = f"{error.message}: {detail}" if detail else error.message
    return {"error": {"code": status, "status": name, "message": message, "details": error_details(error)}}
