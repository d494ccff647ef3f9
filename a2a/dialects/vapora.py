"""VAPORA: A2A 0.3 with the error codes of JSON-RPC alone, and an HTTP status for each error (docs/systems/vapora.md).

All errors of tasks, agents and callers have one code. `data.reason` tells them apart, and so does their HTTP status.
"""

from msgspec.structs import replace

from a2a import errors
from a2a.dialects import v0_3
from a2a.errors import Error, InvalidParams
from a2a.types import Json

DOMAIN = -32000
"""The code of every error that JSON-RPC has no code for."""
CODES: dict[type[Error], int] = {
    errors.ParseError: -32700,
    errors.InvalidRequest: -32600,
    errors.ExtensionSupportRequired: -32600,
    errors.VersionNotSupported: -32600,
    errors.MethodNotFound: -32601,
    errors.InvalidParams: -32602,
    errors.ContentTypeNotSupported: -32602,
    errors.Internal: -32603,
    errors.InvalidAgentResponse: -32603,
    errors.TaskNotFound: DOMAIN,
    errors.TaskNotCancelable: DOMAIN,
    errors.UnsupportedOperation: DOMAIN,
    errors.PushNotSupported: DOMAIN,
    errors.ExtendedCardNotConfigured: DOMAIN,
    errors.UnknownAgent: DOMAIN,
    errors.IdempotencyConflict: DOMAIN,
    errors.BudgetExceeded: DOMAIN,
    errors.Unauthenticated: DOMAIN,
    errors.MissingScope: DOMAIN,
    errors.PermissionDenied: DOMAIN,
    errors.RateLimited: DOMAIN,
    errors.Unavailable: DOMAIN,
}
STATUSES: dict[type[Error], int] = {
    errors.ParseError: 400,
    errors.InvalidRequest: 400,
    errors.ExtensionSupportRequired: 400,
    errors.VersionNotSupported: 400,
    errors.MethodNotFound: 400,
    errors.InvalidParams: 400,
    errors.ContentTypeNotSupported: 400,
    errors.Internal: 500,
    errors.InvalidAgentResponse: 500,
    errors.TaskNotFound: 404,
    errors.TaskNotCancelable: 409,
    errors.UnsupportedOperation: 409,
    errors.PushNotSupported: 400,
    errors.ExtendedCardNotConfigured: 400,
    errors.UnknownAgent: 400,
    errors.IdempotencyConflict: 409,
    errors.BudgetExceeded: 402,
    errors.Unauthenticated: 401,
    errors.MissingScope: 403,
    errors.PermissionDenied: 403,
    errors.RateLimited: 429,
    errors.Unavailable: 503,
}
"""The HTTP status of each error of a single call. 404 is the task's alone: with one code for all of them, a client may
tell an absent task by the status."""


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` always has the reason, since codes do not tell errors apart."""
    violations = error.violations if isinstance(error, InvalidParams) else ()
    data: Json = {"reason": error.reason, **error.facts}
    if violations:
        data["violations"] = [{"field": field, "description": text} for field, text in violations]
    return {"code": code, "message": error.message, "data": data}


LANGUAGE = replace(
    v0_3.DIALECT,
    name="vapora",
    codes=CODES,
    statuses=STATUSES,
    encode_error=encode_error,
    errors_as_stream=False,
    on_cards=False,
    pushes_as=v0_3.DIALECT.name,
)
