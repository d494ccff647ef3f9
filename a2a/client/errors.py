"""The errors that a client raises: one class for each reason of the protocol, and those of the way to the server.

ClientError
|- InvalidCall                                     a call that cannot be sent
|- ConnectionRefused, Timeout                      the way to the server
|- HttpError                                       HTTP failed on that way
|  |- UntrustedServer, UnexpectedStatus
|  `- ConnectionLost, LargeMessageLost, NoRoom
|- InvalidResponse                                 an answer that is not A2A
|- StreamLost                                      a stream that could not be taken up again
|- NoInterface, UntrustedCard, NoToken             before the first call
`- ServerError                                     the server refused the call
   |- UnexpectedStatus                             an HTTP status alone, which is an HttpError too
   `- TaskNotFound, InvalidParams, ...             one for each reason; each has its code and its details

`retryable` says whether the same call may succeed later. The client itself repeats only such calls.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from a2a import errors

LONGEST = 1_000
"""Characters of the fault and of the place in an error. Both may have texts of a server, such as those of its card."""


class ClientError(Exception):
    """The base of all errors of a client."""

    retryable: bool = False
    """True if the call may succeed when it is repeated."""
    reason: str = ""
    """The reason of the protocol, or one of the client's own."""
    advice: ClassVar[str] = ""
    """The remedy, the end of the message."""
    code: int | None = None
    """The number of the error in the language of the call."""
    status: int | None = None
    """The HTTP status of the answer."""
    details: Any = None
    """The details of the error as the server sent them."""
    retry_after: float | None = None
    """The seconds to wait before another call, from the Retry-After header or else from the details."""
    processed: bool = True
    """True if the server may have done the work of the call; false if it certainly has not."""
    attempts: int = 1
    """The number of times that the call was made."""
    doubtful: bool = False
    """True if the server may have done the work in an attempt before the last."""

    def __init__(self, what: str, *, where: str = "") -> None:
        what = what[:LONGEST]
        super().__init__(what)
        self.what = what
        self.where = where[:LONGEST]

    def __str__(self) -> str:
        """Return the fault, its place, and the remedy."""
        place = f" ({self.where})" if self.where else ""
        attempts = f", {self.attempts} attempts" if self.attempts > 1 else ""
        remedy = f". {self.advice}" if self.advice else ""
        return f"{self.what}{place}{attempts}{remedy}"


# ------------------------------------------------------------- on the way


class InvalidCall(ClientError):
    """The call cannot be sent: its address or one of its headers is not valid."""

    reason = "INVALID_CALL"
    advice = "Correct it"
    processed = False


class ConnectionRefused(ClientError):
    """No connection could be made."""

    reason = "CONNECTION_REFUSED"
    advice = "Check the address, and whether the server runs"
    retryable = True
    processed = False


class HttpError(ClientError):
    """HTTP failed: the certificate is wrong, the connection broke, or the answer is a status alone."""


class UntrustedServer(HttpError):
    """The certificate of the server is not valid for its address."""

    reason = "UNTRUSTED_SERVER"
    advice = "Check the address; for a private authority name the file of its certificate in SSL_CERT_FILE"
    processed = False


class ConnectionLost(HttpError):
    """The connection ended before the whole answer was there."""

    reason = "CONNECTION_LOST"
    advice = "Call again: a message that is sent under the same id is one message"
    retryable = True


class LargeMessageLost(ConnectionLost):
    """The connection ended while a large message was sent. A server that refuses its size ends the connection, too,
    and that may destroy the refusal, so the message is not sent again."""

    reason = "LARGE_MESSAGE_LOST"
    advice = "Send less in one message, or have the server take more; if it does, call again"
    retryable = False


class NoRoom(ConnectionLost):
    """The connection was closed, because there is no room for its large answer beside others that have not come
    whole."""

    reason = "NO_ROOM"
    advice = "Call again later, or give the clients a larger room"


class Timeout(ClientError):
    """The server did not answer in time."""

    reason = "TIMEOUT"
    advice = "Allow more time (Timeouts), stream the answer, or ask the server to return immediately"
    retryable = True


class ConnectTimeout(Timeout):
    """No connection could be made in time."""

    advice = "Check the address, and the network between here and there"
    processed = False


class InvalidResponse(ClientError):
    """The answer is not what the protocol says, or it is too large."""

    reason = "INVALID_RESPONSE"
    advice = "Check that the address is that of an A2A server, and its version"


class StreamLost(ClientError):
    """A stream broke and could not be resumed."""

    reason = "STREAM_LOST"
    advice = "The task goes on: subscribe to it later, with the last id"


# ------------------------------------------------------ before the first call


class NoInterface(ClientError):
    """The card has no interface that this client supports and may use."""

    reason = "NO_INTERFACE"
    advice = "Compare the versions and bindings of the card with those of the client"
    processed = False


class UntrustedCard(ClientError):
    """The card has no valid signature."""

    reason = "UNTRUSTED_CARD"
    advice = "Do not call this agent before its operator has explained the card"
    processed = False


class NoToken(ClientError):
    """The token endpoint gave no token."""

    reason = "NO_TOKEN"
    advice = "Check the client id, the client secret and the scopes at the token endpoint"
    processed = False


# ------------------------------------------------------- the server refused


class ServerError(ClientError):
    """The server refused the call. The base of the classes below, and the class of reasons that are not listed."""

    advice = "The details may say more"

    @property
    def message(self) -> str:
        """The message of the server."""
        return self.what


class UnexpectedStatus(HttpError, ServerError):
    """An HTTP status without an error of the protocol. Its reason is HTTP_ and the status."""

    advice = "Check the address, and what stands between here and the server"


class ParseError(ServerError):
    reason = errors.ParseError.reason
    advice = "Check what is between here and the server: the client sends valid JSON"


class InvalidRequest(ServerError):
    reason = errors.InvalidRequest.reason
    advice = "Check the address, and the size of the message, which a server limits (A2A_BODY_BYTES there)"


class MethodNotFound(ServerError):
    reason = errors.MethodNotFound.reason
    advice = "The server does not have this operation in this version; its card lists the versions"


class InvalidParams(ServerError):
    reason = errors.InvalidParams.reason
    advice = "Correct the fields that the details name"

    @property
    def violations(self) -> tuple[tuple[str, str], ...]:
        """The wrong fields, each with a description."""
        listed = [item for item in _objects(self.details) if "fieldViolations" in item or "violations" in item]
        violations = [
            pair for item in listed for pair in _objects(item.get("fieldViolations") or item.get("violations"))
        ]
        return tuple((str(pair.get("field", "")), str(pair.get("description", ""))) for pair in violations)


class IdempotencyConflict(ServerError):
    reason = errors.IdempotencyConflict.reason
    advice = "Send the new content under a new message id"


class Internal(ServerError):
    reason = errors.Internal.reason
    advice = "Tell the operator of the server the reference in the message"
    retryable = True


class TaskNotFound(ServerError):
    reason = errors.TaskNotFound.reason
    advice = "Check the id, and that the credentials are those of the task's owner"


class TaskNotCancelable(ServerError):
    reason = errors.TaskNotCancelable.reason
    advice = "Get the task to see how it ended"


class PushNotSupported(ServerError):
    reason = errors.PushNotSupported.reason
    advice = "Stream the task, or get it from time to time"


class UnsupportedOperation(ServerError):
    reason = errors.UnsupportedOperation.reason
    advice = "Look at the card for what the agent offers; a task that has ended takes no message and no subscriber"


class TaskEnded(UnsupportedOperation):
    reason = errors.TaskEnded.reason
    advice = "Begin another task: one that has ended takes no message and no subscriber"


class SharedStreamNotFound(ServerError):
    reason = errors.SharedStreamNotFound.reason
    advice = "Check the id, and that the credentials are those of a participant"


class WorkflowNotFound(ServerError):
    reason = errors.WorkflowNotFound.reason
    advice = "Check the name of the workflow, and that the credentials are those of its owner"


class PhaseRefused(ServerError):
    reason = errors.PhaseRefused.reason
    advice = "Enter the next phase, or an earlier one"


class SharedStreamClosed(ServerError):
    reason = errors.SharedStreamClosed.reason
    advice = "Start another stream"


class MemoryNotFound(ServerError):
    reason = errors.MemoryNotFound.reason
    advice = "Check the namespace and the key; the entry may have expired"


class ContentTypeNotSupported(ServerError):
    reason = errors.ContentTypeNotSupported.reason
    advice = "Use the media types that the card lists"


class InvalidAgentResponse(ServerError):
    reason = errors.InvalidAgentResponse.reason
    advice = "Tell the operator of the agent"


class ExtendedCardNotConfigured(ServerError):
    reason = errors.ExtendedCardNotConfigured.reason
    advice = "Use the public card"


class ExtensionSupportRequired(ServerError):
    reason = errors.ExtensionSupportRequired.reason
    advice = "Name the extension in `extensions` of the client"


class VersionNotSupported(ServerError):
    reason = errors.VersionNotSupported.reason
    advice = "Choose another version (`versions`), or allow an older one (`downgrade`)"


class UnknownAgent(ServerError):
    reason = errors.UnknownAgent.reason
    advice = "Check the name of the agent or the skill"


class Unauthenticated(ServerError):
    reason = errors.Unauthenticated.reason
    advice = "Give the client valid credentials"
    processed = False


class ExpiredKey(Unauthenticated):
    reason = errors.ExpiredKey.reason
    advice = "Get a new token or key"


class MissingScope(ServerError):
    reason = errors.MissingScope.reason
    advice = "Use credentials with the right that the call needs"
    processed = False


class BudgetExceeded(ServerError):
    reason = errors.BudgetExceeded.reason
    advice = "Raise the budget, or ask the operator of the server for more"
    processed = False


class PermissionDenied(ServerError):
    reason = errors.PermissionDenied.reason
    advice = "Ask the operator of the server for a permission"
    processed = False


class ServerTimeout(ServerError):
    reason = errors.Timeout.reason
    advice = "Get the task later, or allow the agent more time"
    retryable = True


class RateLimited(ServerError):
    reason = errors.RateLimited.reason
    advice = "Call less often, or fewer at a time"
    retryable = True
    processed = False


class Unavailable(ServerError):
    reason = errors.Unavailable.reason
    advice = "Call again later"
    retryable = True
    processed = False


def _kinds(parent: type[ServerError]) -> Iterator[type[ServerError]]:
    """Yield the classes below a class."""
    for kind in parent.__subclasses__():
        yield kind
        yield from _kinds(kind)


REASONS: dict[str, type[ServerError]] = {kind.reason: kind for kind in _kinds(ServerError) if kind.reason}
"""The class of each reason."""


def _objects(value: Any) -> Sequence[dict[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]
