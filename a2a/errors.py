"""The errors of the protocol. Errors have reasons and facts; the numbers belong to the dialects.

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

from typing import ClassVar

MAX_FIELD = 200
"""Characters of a field's path that a message shows: its names may be the caller's."""


class Error(Exception):
    """Something a caller is told. Facts are strings: ids and names the caller may know, never internals."""

    reason: ClassVar[str]
    sentence: ClassVar[str]
    """The fixed beginning of the message; detail belongs into facts."""

    def __init__(self, **facts: str) -> None:
        super().__init__(self.sentence)
        self.facts = facts

    @property
    def message(self) -> str:
        """What the caller is told in words: the sentence, and behind it what some errors add."""
        return self.sentence


class ParseError(Error):
    reason = "PARSE_ERROR"
    sentence = "Invalid JSON payload"


class InvalidRequest(Error):
    """The facts say under `detail` what is wrong with the envelope, the size or the media type."""

    reason = "INVALID_REQUEST"
    sentence = "Request payload validation error"


class MethodNotFound(Error):
    reason = "METHOD_NOT_FOUND"
    sentence = "Method not found"


class InvalidParams(Error):
    """Violations are (field, description) pairs; the field is a dotted path from params."""

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
    """A fault of ours. The reference finds its traceback in the log."""

    reason = "INTERNAL_ERROR"
    sentence = "Internal error"


class TaskNotFound(Error):
    """Missing, or not visible to the caller: the two are never told apart (A2A 1.0, 13.1)."""

    reason = "TASK_NOT_FOUND"
    sentence = "Task not found"


class TaskNotCancelable(Error):
    reason = "TASK_NOT_CANCELABLE"
    sentence = "Task cannot be canceled"


class PushNotSupported(Error):
    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"
    sentence = "Push Notification is not supported"


class UnsupportedOperation(Error):
    reason = "UNSUPPORTED_OPERATION"
    sentence = "This operation is not supported"


class ContentTypeNotSupported(Error):
    # The conformance kit looks for both wordings.
    reason = "CONTENT_TYPE_NOT_SUPPORTED"
    sentence = "Incompatible content types: content type not supported"


class InvalidAgentResponse(Error):
    reason = "INVALID_AGENT_RESPONSE"
    sentence = "Invalid agent response"


class ExtendedCardNotConfigured(Error):
    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    sentence = "Authenticated Extended Card is not configured"


class ExtensionSupportRequired(Error):
    reason = "EXTENSION_SUPPORT_REQUIRED"
    sentence = "Extension support required"


class VersionNotSupported(Error):
    reason = "VERSION_NOT_SUPPORTED"
    sentence = "Version not supported"


class UnknownAgent(Error):
    reason = "UNKNOWN_AGENT"
    sentence = "No such agent or skill"


class IdempotencyConflict(Error):
    reason = "IDEMPOTENCY_CONFLICT"
    sentence = "Invalid parameters: this message id was used before with another content"


class Unauthenticated(Error):
    reason = "UNAUTHENTICATED"
    sentence = "Authentication is required: send an API key as Authorization: Bearer or X-API-Key"


class InvalidKey(Unauthenticated):
    """A key that is not known, was revoked or has expired: the three are never told apart."""

    sentence = "Authentication is required: the API key is unknown, revoked or expired"


class MissingScope(Error):
    reason = "MISSING_SCOPE"
    sentence = "The API key does not have the scope that this method needs"


class RateLimited(Error):
    """The facts say under `limit` what the caller has too much of, and under `most` how much of it there may be."""

    reason = "RATE_LIMITED"
    sentence = "Too much is in flight for this caller, try again later"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts)
        self.retry_after = retry_after
        """Seconds."""


class Unavailable(Error):
    reason = "UNAVAILABLE"
    sentence = "The server cannot take this call now, try again"

    def __init__(self, retry_after: int = 1, **facts: str) -> None:
        super().__init__(**facts)
        self.retry_after = retry_after
        """Seconds."""


ALL: tuple[type[Error], ...] = tuple(Error.__subclasses__())
"""Every error there is; each dialect has a code for each."""
