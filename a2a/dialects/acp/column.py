"""The errors of ACP by their numbers."""

from a2a import errors
from a2a.language import Cell, Column

COLUMN: Column = {
    errors.ParseError: Cell(-32700),
    errors.InvalidRequest: Cell(-32600),
    errors.MethodNotFound: Cell(-32601),
    errors.InvalidParams: Cell(-32602),
    errors.IdempotencyConflict: Cell(-38012, 409),
    errors.Internal: Cell(-32603),
    errors.TaskNotFound: Cell(-40001),
    errors.TaskNotCancelable: Cell(-40002),
    errors.TaskEnded: Cell(-40002),
    errors.PushNotSupported: Cell(-38003),
    errors.UnsupportedOperation: Cell(-38004),
    errors.ContentTypeNotSupported: Cell(-32602),
    errors.InvalidAgentResponse: Cell(-32603),
    errors.ExtendedCardNotConfigured: Cell(-38004),
    errors.ExtensionSupportRequired: Cell(-32600),
    errors.VersionNotSupported: Cell(-32600),
    errors.SharedStreamNotFound: Cell(-40003),
    errors.SharedStreamClosed: Cell(-40004),
    errors.MemoryNotFound: Cell(-40001),
    errors.WorkflowNotFound: Cell(-40001),
    errors.PhaseRefused: Cell(-38004),
    errors.UnknownAgent: Cell(-40005),
    errors.BudgetExceeded: Cell(-38006),
    errors.Timeout: Cell(-38007),
    errors.RateLimited: Cell(-38008, 429),
    errors.Unauthenticated: Cell(-40007, 401),
    errors.ExpiredKey: Cell(-40009, 401),
    errors.MissingScope: Cell(-40008, 403),
    errors.PermissionDenied: Cell(-40006, 403),
    errors.Unavailable: Cell(-38013, 503),
}
"""The numbers of ACP, from -40001 to -40009, and those of JSON-RPC. Numbers from -38000 to -38999 are additions of this
server, for errors that ACP lacks. ACP answers errors with HTTP 200, except those that HTTP itself knows."""
