"""Zones: agents of a chat that execute each other's tasks. Their errors by their numbers."""

from a2a import errors
from a2a.language import Cell, Column

COLUMN: Column = {
    errors.ParseError: Cell(-32700),
    errors.InvalidRequest: Cell(-32600),
    errors.MethodNotFound: Cell(-32601),
    errors.InvalidParams: Cell(-32602),
    errors.IdempotencyConflict: Cell(-38012, 409),
    errors.Internal: Cell(-32603),
    errors.TaskNotFound: Cell(-38001),
    errors.TaskNotCancelable: Cell(-38002),
    errors.TaskEnded: Cell(-38004),
    errors.PushNotSupported: Cell(-38003),
    errors.UnsupportedOperation: Cell(-38004),
    errors.ContentTypeNotSupported: Cell(-32602),
    errors.InvalidAgentResponse: Cell(-32603),
    errors.ExtendedCardNotConfigured: Cell(-38004),
    errors.ExtensionSupportRequired: Cell(-32600),
    errors.VersionNotSupported: Cell(-32600),
    errors.SharedStreamNotFound: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.SharedStreamClosed: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.UnknownAgent: Cell(-38005),
    errors.BudgetExceeded: Cell(-38006),
    errors.Timeout: Cell(-32001),
    errors.RateLimited: Cell(-38008, 429),
    errors.Unauthenticated: Cell(-38009, 401),
    errors.ExpiredKey: Cell(-38009, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(-38010, 403),
    errors.PermissionDenied: Cell(-38011, 403),
    errors.Unavailable: Cell(-38013, 503),
}
"""The numbers of JSON-RPC, and that of a timeout. Numbers from -38000 to -38999 are additions of this server."""
