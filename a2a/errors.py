"""The errors of the protocol. Each has a reason and facts; the numbers belong to the languages.

Each error is a row of the matrix (a2a/matrix.py), in which every language has a cell for it. A class that is a twin has
the cells of its parent: it differs in its sentence alone. The docstring of a row is its text in
docs/reference/errors.md.

Error
|- ParseError, InvalidRequest, MethodNotFound       faults of the envelope
|- InvalidParams(violations)                        wrong fields, each with the reason
|- Internal(reference)                              a fault of the server
|- TaskNotFound, TaskNotCancelable, PushNotSupported, ContentTypeNotSupported, InvalidAgentResponse,
|  ExtendedCardNotConfigured, ExtensionSupportRequired, VersionNotSupported
|- UnsupportedOperation
|  `- TaskEnded                                     a task that has ended takes no message and no subscriber
|- SharedStreamNotFound, SharedStreamClosed         a shared stream that is unknown, or has ended
|- MemoryNotFound                                   no entry of the memory has the key
|- WorkflowNotFound, PhaseRefused                  a workflow that is unknown, or a phase that it may not enter
|- UnknownAgent                                     no agent or skill has the name
|- IdempotencyConflict                              one message id with two contents
|  `- ChunkConflict (twin)                          one number of a chunk with two contents
|- Unauthenticated                                  no key
|  `- InvalidKey (twin)                             a credential that is not valid
|     |- InvalidTicket (twin)                       a ticket that is unknown, used or expired
|     `- ExpiredKey                                 a key that was valid until its end
|- MissingScope                                     a key without the scope
|- BudgetExceeded                                   less is left than the task is expected to cost
|- PermissionDenied                                 a caller whose permissions do not reach so far
|- Timeout                                          the answer was not there in time
|- RateLimited(retry_after)                         the caller has too much in flight
|  `- TooManyCalls (twin)                           the caller has reached a rate limit
`- Unavailable(retry_after)                         the server is stopping or overloaded
"""

from collections.abc import Iterator
from typing import ClassVar

MAX_FIELD = 200
"""Characters of a field's path that a message shows. The path may contain names that the caller made up."""


class Error(Exception):
    """The base of all errors. Facts are strings, such as ids and names, that the caller may see: never internals."""

    reason: ClassVar[str]
    """The name of the error for programs, in capitals."""
    sentence: ClassVar[str]
    """The fixed beginning of the message. Details are facts."""
    row: ClassVar[type["Error"]]
    """The class whose cells the error has in the matrix: its own class, or that of which it is a twin."""

    def __init_subclass__(cls, *, twin: bool = False) -> None:
        """Choose the row of a class. Raises TypeError for one that neither is a twin nor has a reason of its own."""
        super().__init_subclass__()
        if twin == ("reason" in vars(cls)):
            raise TypeError(f"{cls.__name__} needs a reason of its own and cells in the matrix, or else twin=True")
        cls.row = cls.row if twin else cls

    def __init__(self, **facts: str) -> None:
        super().__init__(self.sentence)
        self.facts = facts

    @property
    def message(self) -> str:
        """The message for the caller: the sentence, with details if the class adds any."""
        return self.sentence

    @property
    def full_message(self) -> str:
        """The message with the facts `detail` and `reference`: many clients show only the message."""
        reference = f"reference {self.facts['reference']}" if "reference" in self.facts else ""
        details = [text for text in (self.detail, reference) if text]
        return f"{self.message}: {'; '.join(details)}" if details else self.message

    @property
    def detail(self) -> str:
        """The detail behind the message, from the facts; empty if there is none."""
        return self.facts.get("detail", "")


class ParseError(Error):
    """The body is not JSON. The fact `detail` says what is wrong with it, and where."""

    reason = "PARSE_ERROR"
    sentence = "Invalid JSON payload"


class InvalidRequest(Error):
    """The envelope is malformed, or HTTP refuses the method, the duration, the size or the media type of the request
    (405, 408, 413, 415). The fact `detail` gives the reason."""

    reason = "INVALID_REQUEST"
    sentence = "Request payload validation error"


class NotOverTls(InvalidRequest, twin=True):
    """The call did not come over TLS, and its language demands it."""


class MethodNotFound(Error):
    """The version of the call has no method of this name. Over REST: the path does not exist."""

    reason = "METHOD_NOT_FOUND"
    sentence = "Method not found"


class InvalidParams(Error):
    """A field is wrong, a file is too large, or the address of a webhook must not be called. Each violation names a
    field, as a dotted path from the params, and describes the fault."""

    reason = "INVALID_PARAMS"
    sentence = "Invalid parameters"

    def __init__(self, *violations: tuple[str, str], **facts: str) -> None:
        super().__init__(**facts)
        self.violations = violations

    @property
    def message(self) -> str:
        """The sentence with the first violation, since many clients show only the message."""
        if not self.violations:
            return self.sentence
        field, description = self.violations[0]
        colon = "" if description[:1].islower() else ":"
        return f"{self.sentence}: {field[:MAX_FIELD]}{colon} {description}"


class Internal(Error):
    """A fault of the server. The reference in the message finds its traceback in the log."""

    reason = "INTERNAL_ERROR"
    sentence = "Internal error"


ABSENT_WEBHOOK = "webhookId"
"""The fact of a TaskNotFound whose task exists, but not the webhook of it that the call asks for."""


class TaskNotFound(Error):
    """The task or its webhook does not exist, or belongs to another owner: the answers are the same (A2A 1.0, 13.1)."""

    reason = "TASK_NOT_FOUND"
    sentence = "Task not found"


class TaskNotCancelable(Error):
    """The task has ended already."""

    reason = "TASK_NOT_CANCELABLE"
    sentence = "Task cannot be canceled"


class PushNotSupported(Error):
    """Webhooks are switched off (`A2A_PUSH`)."""

    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"
    sentence = "Push Notification is not supported"


class UnsupportedOperation(Error):
    """The task has reached a limit; or streams, links or the extended card are switched off."""

    reason = "UNSUPPORTED_OPERATION"
    sentence = "This operation is not supported"


class TaskEnded(UnsupportedOperation):
    """The task has ended, so that it takes no message and no subscriber."""

    reason = "TASK_ENDED"


class SharedStreamNotFound(Error):
    """The shared stream does not exist, or the caller takes no part in it: the answers are the same."""

    reason = "SHARED_STREAM_NOT_FOUND"
    sentence = "Stream not found"


class SharedStreamClosed(Error):
    """The shared stream has ended, so that it takes no chunk and no message."""

    reason = "SHARED_STREAM_CLOSED"
    sentence = "Stream already closed"


class MemoryNotFound(Error):
    """The caller has no entry of this key in its memory, or it has expired. Entries of other owners do not count."""

    reason = "MEMORY_NOT_FOUND"
    sentence = "Memory entry not found"


class WorkflowNotFound(Error):
    """The caller has no workflow of this name. Workflows of other owners do not count, nor, at the address of an
    agent, those that began elsewhere."""

    reason = "WORKFLOW_NOT_FOUND"
    sentence = "Workflow not found"


class PhaseRefused(Error):
    """The workflow may not enter the phase: it would skip one, or the workflow has ended. The facts `currentPhase` and
    `requestedPhase` name both."""

    reason = "PHASE_REFUSED"
    sentence = "The workflow may not enter this phase"


class ContentTypeNotSupported(Error):
    """The agent does not accept the media type of a part, or returns none of `acceptedOutputModes`."""

    # The conformance kit looks for both phrases.
    reason = "CONTENT_TYPE_NOT_SUPPORTED"
    sentence = "Incompatible content types: content type not supported"


class InvalidAgentResponse(Error):
    """The agent has failed, in a language in which a call is the work itself. In A2A such a task is an answer, and this
    server never answers the error."""

    reason = "INVALID_AGENT_RESPONSE"
    sentence = "Invalid agent response"


class ExtendedCardNotConfigured(Error):
    """The host of the call is not in `ALLOWED_HOSTS` and `A2A_PUBLIC_URL` is not set, so the card has no address (0.2:
    404). In 0.x also: the extended card is switched off."""

    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    sentence = "Authenticated Extended Card is not configured"


class ExtensionSupportRequired(Error):
    """The agent requires an extension that the call does not request."""

    reason = "EXTENSION_SUPPORT_REQUIRED"
    sentence = "Extension support required"


class VersionNotSupported(Error):
    """The server does not speak the `A2A-Version` of the call, or not at this path."""

    reason = "VERSION_NOT_SUPPORTED"
    sentence = "Version not supported"


class UnknownAgent(Error):
    """No agent or skill has this name."""

    reason = "UNKNOWN_AGENT"
    sentence = "No such agent or skill"

    @property
    def message(self) -> str:
        """The sentence with the name that the caller gave, and the place where the names are."""
        label = next((kind for kind in ("agent", "skill") if kind in self.facts), None)
        if label is None:
            return self.sentence
        name = self.facts[label]
        return f'{self.sentence}: there is no {label} "{name}"; GET /agents/ lists the agents and their skills'


class IdempotencyConflict(Error):
    """The caller has used the message id before, for a message with other content or to another agent."""

    reason = "IDEMPOTENCY_CONFLICT"
    sentence = "Invalid parameters: this message id was used before, for other content or another agent; use a new one"


class ChunkConflict(IdempotencyConflict, twin=True):
    """The caller has used the sequence before, for a chunk of the same message with other content."""

    sentence = "Invalid parameters: this sequence was used before, for another chunk of the message"


class RequestConflict(IdempotencyConflict, twin=True):
    """The caller has used the `X-Request-ID` before, for another call."""

    sentence = "Invalid parameters: this X-Request-ID was used before with another call"


class Unauthenticated(Error):
    """The call has no credential, or one that is unknown, revoked, expired or for another address. The answer is 401
    with a challenge, which says `error="invalid_token"` if there was one."""

    reason = "UNAUTHENTICATED"
    sentence = "Authentication is required: send an API key as Authorization: Bearer or X-API-Key"

    def __init__(self, credentials: str = "", **facts: str) -> None:
        super().__init__(**facts)
        self.credentials = credentials
        """The credentials that the server takes, in words; empty for an API key."""

    @property
    def message(self) -> str:
        return f"Authentication is required: send {self.credentials}" if self.credentials else self.sentence


class InvalidKey(Unauthenticated, twin=True):
    """A credential that is not valid at this address. The answers do not say why; all have `error="invalid_token"`."""

    sentence = "Authentication is required: the credential is unknown, revoked, expired or not valid here"


class InvalidTicket(InvalidKey, twin=True):
    """The ticket of a WebSocket connection is unknown, used or expired. The answers do not say which."""

    sentence = "Authentication is required: the ticket is unknown, used or expired; POST /ws/ticket returns a new one"


class ExpiredKey(InvalidKey):
    """The API key or the token was valid until its end, which has passed. Only a language that has a number for it
    tells, because the caller has shown a credential that was once its own."""

    reason = "KEY_EXPIRED"


class MissingScope(Error):
    """The credential lacks a scope that the method or the agent needs."""

    reason = "MISSING_SCOPE"
    sentence = "The credential does not have the scope that this call needs"

    @property
    def detail(self) -> str:
        return self.facts.get("required") or super().detail


class BudgetExceeded(Error):
    """The budget is less than the agent's minimum expected cost: that of the call (`X-Budget-USD`), what its task may
    still cost, or what is left of the stored budget of the caller or of its tenant. The facts `budget`, `available` and
    `required` say which, and the amounts in dollars."""

    reason = "BUDGET_EXCEEDED"
    sentence = "The budget does not cover the expected cost"

    @property
    def detail(self) -> str:
        text = "at least {required} USD is required, and {available} USD is available ({budget})"
        return text.format_map(self.facts) if "required" in self.facts else super().detail


class PermissionDenied(Error):
    """The permissions of the caller do not include a phase of a workflow, a batch operation or a namespace. The facts
    `kind` and `name` say which. An agent or a skill that a caller may not use is UNKNOWN_AGENT."""

    reason = "PERMISSION_DENIED"
    sentence = "The permissions of the caller do not include this"


class Timeout(Error):
    """The answer was not there in time. The task, if there is one, goes on."""

    reason = "TIMEOUT"
    sentence = "The answer was not there in time"


class RateLimited(Error):
    """The caller has too much in flight or stored, or makes too many calls. `Retry-After` and the fact `retryAfter` say
    in how many seconds to try again. The facts `limit` and `most` are the name of the limit and its value."""

    reason = "RATE_LIMITED"
    sentence = "Too much is in flight for this caller, try again later"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts | {"retryAfter": str(retry_after)})
        self.retry_after = retry_after
        """The value of the Retry-After header, in seconds."""


class TooManyCalls(RateLimited, twin=True):
    """The caller or its address has reached a rate limit, or its address has sent too many wrong credentials."""

    sentence = "Too many calls, try again later"


class Unavailable(Error):
    """The server is stopping or overloaded, or it cannot reach its database. `Retry-After` and the fact `retryAfter`
    say in how many seconds to try again."""

    reason = "UNAVAILABLE"
    sentence = "The server cannot take this call now, try again"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts | {"retryAfter": str(retry_after)})
        self.retry_after = retry_after
        """The value of the Retry-After header, in seconds."""


def _rows(parent: type[Error]) -> Iterator[type[Error]]:
    """Yield the classes below a class that have a row, parents before their children."""
    for kind in parent.__subclasses__():
        if kind.row is kind:
            yield kind
        yield from _rows(kind)


ALL: tuple[type[Error], ...] = tuple(_rows(Error))
"""All errors that have a row in the matrix. Each language has a cell for each."""
