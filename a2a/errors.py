"""The errors of the protocol. Errors have reasons and facts; the numbers belong to the dialects.

The docstring of a class is its row in docs/reference/errors.md.

Error
|- ParseError, InvalidRequest, MethodNotFound       the envelope
|- InvalidParams(violations)                        the fields that are wrong, and why
|- Internal(reference)                              ours; told as a reference only
|- TaskNotFound, TaskNotCancelable, PushNotSupported, UnsupportedOperation, ContentTypeNotSupported,
|  InvalidAgentResponse, ExtendedCardNotConfigured, ExtensionSupportRequired, VersionNotSupported
|- UnknownAgent                                     no agent or skill of that name
|- IdempotencyConflict                              one message id, two bodies
|- Unauthenticated, MissingScope                    who asks, and whether they may
|  `- InvalidKey                                    a key was sent, and it is not good
|- RateLimited(retry_after)                         the caller has enough in flight: ask again
`- Unavailable(retry_after)                         draining or overloaded: ask again
"""

from typing import ClassVar, TypeVar

MAX_FIELD = 200
"""Characters of a field's path that a message shows: its names may be the caller's."""


class Error(Exception):
    """The base of all errors. Facts are strings: ids and names that the caller may know, never internals."""

    reason: ClassVar[str]
    sentence: ClassVar[str]
    """The fixed beginning of the message; details belong into facts."""

    def __init__(self, **facts: str) -> None:
        super().__init__(self.sentence)
        self.facts = facts

    @property
    def message(self) -> str:
        """The message for the caller: the sentence, and details that some errors add."""
        return self.sentence


class ParseError(Error):
    """The body is not JSON."""

    reason = "PARSE_ERROR"
    sentence = "Invalid JSON payload"


class InvalidRequest(Error):
    """The envelope is not right, or the size, the media type or the HTTP method of the request (405, 408, 413, 415).
    The fact `detail` says what is wrong.
    """

    reason = "INVALID_REQUEST"
    sentence = "Request payload validation error"


class MethodNotFound(Error):
    """No version has a method of this name, or the version of the call has not. Over REST: nothing is at this path."""

    reason = "METHOD_NOT_FOUND"
    sentence = "Method not found"


class InvalidParams(Error):
    """A field is wrong, a file is too large, or an address must not be called. The violations name each field,
    as a dotted path from the params, with a description.
    """

    reason = "INVALID_PARAMS"
    sentence = "Invalid parameters"

    def __init__(self, *violations: tuple[str, str], **facts: str) -> None:
        super().__init__(**facts)
        self.violations = violations

    @property
    def message(self) -> str:
        """The sentence with the first violation: many clients show nothing but the message."""
        if not self.violations:
            return self.sentence
        field, description = self.violations[0]
        colon = "" if description[:1].islower() else ":"
        return f"{self.sentence}: {field[:MAX_FIELD]}{colon} {description}"


class Internal(Error):
    """A fault of the server. The reference in the message finds its traceback in the log."""

    reason = "INTERNAL_ERROR"
    sentence = "Internal error"


class TaskNotFound(Error):
    """The task, or its webhook, is missing or belongs to another owner: the answers are the same (A2A 1.0, 13.1)."""

    reason = "TASK_NOT_FOUND"
    sentence = "Task not found"


class TaskNotCancelable(Error):
    """The task has ended."""

    reason = "TASK_NOT_CANCELABLE"
    sentence = "Task cannot be canceled"


class PushNotSupported(Error):
    """Webhooks are switched off (`A2A_PUSH`)."""

    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"
    sentence = "Push Notification is not supported"


class UnsupportedOperation(Error):
    """A message to, or a subscription to, a task that has ended; a task that has reached its limits; streams or the
    extended card are switched off.
    """

    reason = "UNSUPPORTED_OPERATION"
    sentence = "This operation is not supported"


class ContentTypeNotSupported(Error):
    """A part has a media type that the agent does not take, or the agent makes none of `acceptedOutputModes`."""

    # The conformance kit looks for both wordings.
    reason = "CONTENT_TYPE_NOT_SUPPORTED"
    sentence = "Incompatible content types: content type not supported"


class InvalidAgentResponse(Error):
    """Defined by A2A; the server never answers it."""

    reason = "INVALID_AGENT_RESPONSE"
    sentence = "Invalid agent response"


class ExtendedCardNotConfigured(Error):
    """The card was asked for by a name that is not in `ALLOWED_HOSTS`, without `A2A_PUBLIC_URL`, so that no address can
    be given out (0.2: 404). In 0.x also: the extended card is switched off.
    """

    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    sentence = "Authenticated Extended Card is not configured"


class ExtensionSupportRequired(Error):
    """The agent requires an extension that the caller did not ask for."""

    reason = "EXTENSION_SUPPORT_REQUIRED"
    sentence = "Extension support required"


class VersionNotSupported(Error):
    """The `A2A-Version` is none that the server speaks, or not one of this path."""

    reason = "VERSION_NOT_SUPPORTED"
    sentence = "Version not supported"


class UnknownAgent(Error):
    """No agent or skill has this name."""

    reason = "UNKNOWN_AGENT"
    sentence = "No such agent or skill"


class IdempotencyConflict(Error):
    """The message id was used before with another content."""

    reason = "IDEMPOTENCY_CONFLICT"
    sentence = "Invalid parameters: this message id was used before with another content"


class Unauthenticated(Error):
    """There is no API key, or one that is unknown, revoked or expired. The answer is 401 with a challenge, which says
    `error="invalid_token"` if there was a key.
    """

    reason = "UNAUTHENTICATED"
    sentence = "Authentication is required: send an API key as Authorization: Bearer or X-API-Key"


class InvalidKey(Unauthenticated):
    """The API key is unknown, revoked or expired: the answers are the same, with `error="invalid_token"`."""

    sentence = "Authentication is required: the API key is unknown, revoked or expired"


class MissingScope(Error):
    """The API key does not have the scope that the method or the agent needs."""

    reason = "MISSING_SCOPE"
    sentence = "The API key does not have the scope that this method needs"


class RateLimited(Error):
    """The caller has too much in flight. `Retry-After` says when to try again, the fact `limit` names the limit, and
    the fact `most` its value.
    """

    reason = "RATE_LIMITED"
    sentence = "Too much is in flight for this caller, try again later"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts)
        self.retry_after = retry_after
        """Seconds."""


class Unavailable(Error):
    """The server is going down, or has too much to do, or its database is away. `Retry-After` says when to try
    again.
    """

    reason = "UNAVAILABLE"
    sentence = "The server cannot take this call now, try again"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts)
        self.retry_after = retry_after
        """Seconds."""


ALL: tuple[type[Error], ...] = tuple(Error.__subclasses__())
"""Every error there is; each dialect has a code for each."""

Value = TypeVar("Value")


def entry(table: dict[type[Error], Value], error: Error, what: str) -> Value:
    """Return the table's value for the class of an error, or for its nearest parent. Raises LookupError."""
    for ancestor in type(error).__mro__:
        if ancestor in table:
            return table[ancestor]
    raise LookupError(f"{type(error).__name__} has no {what}: add it to the table")
