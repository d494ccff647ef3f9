"""ADR-002: agents that are invoked with a budget. Its errors by their numbers, reasons and HTTP statuses."""

from a2a import errors
from a2a.language import Cell, Column

_AWAY, _INVALID = "AGENT_UNAVAILABLE", "VALIDATION_ERROR"
COLUMN: Column = {
    errors.ParseError: Cell(-32700, 400, reason=_INVALID),
    errors.InvalidRequest: Cell(-32600, 400, reason=_INVALID),
    errors.MethodNotFound: Cell(-32601, 400, reason=_INVALID),
    errors.InvalidParams: Cell(-32602, 400, reason=_INVALID),
    errors.IdempotencyConflict: Cell(-38012, 409),
    errors.Internal: Cell(-32603),
    errors.TaskNotFound: Cell(-38001),
    errors.TaskNotCancelable: Cell(-38002),
    errors.TaskEnded: Cell(-38004),
    errors.PushNotSupported: Cell(-38003),
    errors.UnsupportedOperation: Cell(-38004),
    errors.ContentTypeNotSupported: Cell(-32602, 400, reason=_INVALID),
    errors.InvalidAgentResponse: Cell(-32603),
    errors.ExtendedCardNotConfigured: Cell(-38004),
    errors.ExtensionSupportRequired: Cell(-32600, 400, reason=_INVALID),
    errors.VersionNotSupported: Cell(-32600, 400, reason=_INVALID),
    errors.SharedStreamNotFound: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.SharedStreamClosed: Cell(-38004, reason=errors.UnsupportedOperation.reason),
    errors.UnknownAgent: Cell(-32000, 503, reason=_AWAY),
    errors.BudgetExceeded: Cell(-32001, 402),
    errors.Timeout: Cell(-32002, 408),
    errors.RateLimited: Cell(-32003, 429),
    errors.Unauthenticated: Cell(-38009, 401),
    errors.ExpiredKey: Cell(-38009, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(-38010, 403),
    errors.PermissionDenied: Cell(-38011, 403),
    errors.Unavailable: Cell(-32000, 503, reason=_AWAY),
}
"""The numbers and reasons of ADR-002, and those of JSON-RPC. Numbers from -38000 to -38999 are additions of this
server, for errors that ADR-002 lacks."""
