"""The errors of ACP: their numbers and names, and `data` that says what to do."""

import re

from msgspec import UNSET, Struct, UnsetType

from a2a import errors
from a2a.errors import (
    ContentTypeNotSupported,
    Error,
    InvalidKey,
    InvalidParams,
    MissingScope,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from a2a.language import Cell, Column, entry
from a2a.mismatches import KINDS
from a2a.types import Json

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
NAMES: dict[int, str] = {
    -32700: "Parse error",
    -32600: "Invalid Request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -40001: "Task not found",
    -40002: "Task already completed",
    -40003: "Stream not found",
    -40004: "Stream already closed",
    -40005: "Agent not available",
    -40006: "Permission denied",
    -40007: "Authentication failed",
    -40008: "Insufficient OAuth2 scope",
    -40009: "OAuth2 token expired",
}
"""The message of each number that ACP lists. Other errors have the sentence of this server."""
SUGGESTIONS: dict[type[Error], str] = {
    errors.ParseError: "Send one JSON-RPC 2.0 request, or an array of them, as UTF-8 JSON",
    errors.InvalidRequest: "Send an object with jsonrpc, method, params and id, and no other members",
    errors.NotOverTls: "Send the call to the https or wss address of this server",
    errors.MethodNotFound: "Call rpc.discover for the methods of this server",
    errors.InvalidParams: "Correct the field and send the request again",
    errors.Internal: "Try again later, and give the reference to the operator of this server",
    errors.TaskNotFound: "Check that the taskId is correct; the task may have been deleted",
    errors.TaskNotCancelable: "Get the task for its result: it has ended",
    errors.TaskEnded: "Get the task for its result, and create another task for further work",
    errors.UnsupportedOperation: "Create another task",
    errors.SharedStreamNotFound: "Check that the streamId is correct; only participants see a stream",
    errors.SharedStreamClosed: "Resume the stream by stream.start if it is paused, or start another one",
    errors.MemoryNotFound: "Check the namespace and the key; the entry may have expired",
    errors.WorkflowNotFound: "Check the name of the workflow",
    errors.PhaseRefused: "Set the phase that follows the current one, or an earlier one",
    errors.UnknownAgent: "Name an agent of the card of this server, or leave the name out for its default agent",
    errors.PermissionDenied: "Ask the operator of this server for the permission",
    errors.Unauthenticated: "Get an access token with the required scopes, and send it as Authorization: Bearer",
    errors.ExpiredKey: "Get a new access token, and send the request again with it",
    errors.MissingScope: "Request additional scopes from authorization server",
    errors.ContentTypeNotSupported: "Send parts of a mimeType that the agent's card lists",
    errors.InvalidAgentResponse: "Try again later, or create the task for another agent",
    errors.ExtendedCardNotConfigured: "Call this server at its public address",
    errors.ExtensionSupportRequired: "Name another agent: ACP has no extensions",
    errors.VersionNotSupported: "Leave the header A2A-Version out of calls in ACP",
    errors.PushNotSupported: "Poll the task with tasks.get",
    errors.Timeout: "Get the task later: it goes on",
    errors.BudgetExceeded: "Raise the budget, or create the task for an agent that costs less",
    errors.RateLimited: "Wait the seconds of retryAfter and send the request again",
    errors.IdempotencyConflict: "Send the other content with a messageId or a sequence of its own",
    errors.Unavailable: "Wait the seconds of retryAfter and send the request again",
}
"""A sentence for each error that says what its caller can do. A twin without one has that of its row."""
DESCRIPTIONS: dict[type[Error], str] = {
    errors.Unauthenticated: "The call has no access token",
    errors.InvalidKey: "The access token is unknown, revoked, expired or not valid here",
    errors.ExpiredKey: "The access token is expired",
}
"""The descriptions of errors of OAuth 2.0 (RFC 6750, 3)."""
_KIND = "|".join(KINDS.values())
_MISMATCH = re.compile(rf"must be (?P<expected>(?:{_KIND})(?:(?:, | or )(?:{_KIND}))*), not (?P<received>{_KIND})")


class Fault(Struct):
    """An error of ACP. `data` has a suggestion, and is absent only if the body cannot be read."""

    code: int
    message: str
    data: Json | UnsetType = UNSET


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. It never names other tasks than the one of the call."""
    own = SUGGESTIONS.get(type(error))
    suggestion = entry(SUGGESTIONS, error, "suggestion in ACP") if own is None else own
    data: Json = {"suggestion": suggestion, "reason": error.reason}
    return {"code": code, "message": NAMES.get(code, error.sentence), "data": data | _details(error)}


def _details(error: Error) -> Json:
    """Return the members of `data` that the kind of error has."""
    match error:
        case InvalidParams():
            return error.facts | _field_members(error)
        case ContentTypeNotSupported(facts=facts):
            kinds = {"expected": facts.get("supported", ""), "received": facts.get("mediaType", "")}
            members = {name: f"mimeType ({kind})" for name, kind in kinds.items()}
            return error.facts | {"field": f"params.{facts.get('part', '')}"} | members
        case MissingScope(facts=facts):
            required, provided = facts.get("required", ""), facts.get("provided", "")
            return _others(error) | {"requiredScopes": required.split(), "providedScopes": provided.split()}
        case Unauthenticated():
            return _authentication(error)
        case RateLimited(retry_after=seconds) | Unavailable(retry_after=seconds):
            return error.facts | {"retryAfter": seconds}
        case _:
            return dict(error.facts)


def _authentication(error: Unauthenticated) -> Json:
    """Return the error as an OAuth server would (RFC 6750, 3.1), the scopes of the call, and where tokens come from."""
    return _others(error) | {
        "error": "invalid_token" if isinstance(error, InvalidKey) else "invalid_request",
        "error_description": DESCRIPTIONS.get(type(error), error.sentence),
        "requiredScopes": error.facts.get("required", "").split(),
    }


def _others(error: Error) -> Json:
    """Return the facts but those that are lists in ACP."""
    return {name: fact for name, fact in error.facts.items() if name not in {"required", "provided"}}


def _field_members(error: InvalidParams) -> Json:
    """Return the first wrong field, with what was expected there and what was received."""
    if not error.violations:
        return {}
    field, text = error.violations[0]
    path = field if field == "params" else f"params.{field}"
    expected, received = _expectation(field.rpartition(".")[2], text)
    return {"field": path[: errors.MAX_FIELD], "expected": expected, "received": received}


def _expectation(name: str, text: str) -> tuple[str, str]:
    """Return the expected and the received value of a field, such as `taskId (string)` and `taskId (number)`."""
    if mismatch := _MISMATCH.fullmatch(text):
        kinds = {kind: re.sub(r"\ban? ", "", mismatch[kind]) for kind in ("expected", "received")}
        return f"{name} ({kinds['expected']})", f"{name} ({kinds['received']})"
    if text == "is required":
        return f"{name} (required)", f"{name} (absent)"
    return f"{name} ({text.removeprefix('must be ')})", f"{name} (another value)"
