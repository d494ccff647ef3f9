"""VAPORA: A2A 0.3 with the error codes of JSON-RPC alone, and an HTTP status for each error (docs/systems/vapora.md).

All errors of tasks, agents and callers have one code. `data.reason` tells them apart, and so does their HTTP status.
"""

from msgspec.structs import replace

from a2a import errors
from a2a.dialects import v0_3
from a2a.errors import Error, InvalidParams
from a2a.language import Cell, Column
from a2a.types import Json

DOMAIN = -32000
"""The code of every error that JSON-RPC has no code for."""
COLUMN: Column = {
    errors.ParseError: Cell(-32700, 400),
    errors.InvalidRequest: Cell(-32600, 400),
    errors.MethodNotFound: Cell(-32601, 400),
    errors.InvalidParams: Cell(-32602, 400),
    errors.IdempotencyConflict: Cell(DOMAIN, 409),
    errors.Internal: Cell(-32603, 500),
    errors.TaskNotFound: Cell(DOMAIN, 404),
    errors.TaskNotCancelable: Cell(DOMAIN, 409),
    errors.TaskEnded: Cell(DOMAIN, 409, reason=errors.UnsupportedOperation.reason),
    errors.PushNotSupported: Cell(DOMAIN, 400),
    errors.UnsupportedOperation: Cell(DOMAIN, 409),
    errors.ContentTypeNotSupported: Cell(-32602, 400),
    errors.InvalidAgentResponse: Cell(-32603, 500),
    errors.ExtendedCardNotConfigured: Cell(DOMAIN, 400),
    errors.ExtensionSupportRequired: Cell(-32600, 400),
    errors.VersionNotSupported: Cell(-32600, 400),
    errors.SharedStreamNotFound: Cell(DOMAIN, 400),
    errors.SharedStreamClosed: Cell(DOMAIN, 409, reason=errors.UnsupportedOperation.reason),
    errors.MemoryNotFound: Cell(DOMAIN, 400),
    errors.WorkflowNotFound: Cell(DOMAIN, 400),
    errors.PhaseRefused: Cell(DOMAIN, 409, reason=errors.UnsupportedOperation.reason),
    errors.UnknownAgent: Cell(DOMAIN, 400),
    errors.BudgetExceeded: Cell(DOMAIN, 402),
    errors.Timeout: Cell(DOMAIN, 504),
    errors.RateLimited: Cell(DOMAIN, 429),
    errors.Unauthenticated: Cell(DOMAIN, 401),
    errors.ExpiredKey: Cell(DOMAIN, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(DOMAIN, 403),
    errors.PermissionDenied: Cell(DOMAIN, 403),
    errors.Unavailable: Cell(DOMAIN, 503),
}
"""The cells of VAPORA. Only an absent task has the status 404: most errors share one code, so a client may recognise an
absent task by the status alone."""


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` always has the reason, since codes do not tell errors apart."""
    violations = error.violations if isinstance(error, InvalidParams) else ()
    data: Json = {"reason": COLUMN[error.row].reason or error.reason, **error.facts}
    if violations:
        data["violations"] = [{"field": field, "description": text} for field, text in violations]
    return {"code": code, "message": error.message, "data": data}


def words(error: Error) -> Error:
    """Return an operation's error in the words of VAPORA, where an absent webhook is no absent task: 404 is the task's
    alone."""
    if isinstance(error, errors.TaskNotFound) and errors.ABSENT_WEBHOOK in error.facts:
        return InvalidParams(("params.pushNotificationConfigId", "must be the id of a webhook of the task"))
    return v0_3.words(error)


LANGUAGE = replace(
    v0_3.DIALECT,
    name="vapora",
    column=COLUMN,
    encode_error=encode_error,
    words=words,
    errors_as_stream=False,
    on_cards=False,
    pushes_as=v0_3.DIALECT.name,
)
