"""The sentences that users in Slack read in place of errors. They have no code, no trace, no path and no word of a
protocol. Operators find the reason of the error beside the question."""

from a2a import errors
from a2a.errors import Error

_FAULT = "Something went wrong while answering. Please try again; if it happens again, tell your administrator."
_NOT_READ = "I could not read this question. Please write it in other words, and send files again."
_GONE = "This conversation cannot be continued. Please begin a new one."
_NOT_ALLOWED = "You may not ask this here. Your administrator can change that."
_SETUP = "I am not set up for this question. Please tell your administrator."

SENTENCES: dict[type[Error], str] = {
    errors.ParseError: _FAULT,
    errors.InvalidRequest: _NOT_READ,
    errors.MethodNotFound: _SETUP,
    errors.InvalidParams: _NOT_READ,
    errors.IdempotencyConflict: _NOT_READ,
    errors.Internal: _FAULT,
    errors.InvalidAgentResponse: _FAULT,
    errors.TaskNotFound: _GONE,
    errors.TaskNotCancelable: "It is too late to stop this: it has ended already.",
    errors.TaskEnded: _GONE,
    errors.PushNotSupported: _SETUP,
    errors.UnsupportedOperation: _SETUP,
    errors.ContentTypeNotSupported: "I cannot read files of this kind. Please send the content in another form.",
    errors.ExtendedCardNotConfigured: _SETUP,
    errors.ExtensionSupportRequired: _SETUP,
    errors.VersionNotSupported: _SETUP,
    errors.MemoryNotFound: _GONE,
    errors.WorkflowNotFound: _GONE,
    errors.PhaseRefused: _SETUP,
    errors.SharedStreamNotFound: _GONE,
    errors.SharedStreamClosed: _GONE,
    errors.UnknownAgent: _SETUP,
    errors.BudgetExceeded: "The budget for questions is used up. Please ask your administrator for more.",
    errors.Timeout: "The answer took too long. Please try again, perhaps with a smaller question.",
    errors.RateLimited: "There have been many questions in a short time. Please try again in {wait}.",
    errors.Unauthenticated: _NOT_ALLOWED,
    errors.ExpiredKey: _NOT_ALLOWED,
    errors.MissingScope: _NOT_ALLOWED,
    errors.PermissionDenied: _NOT_ALLOWED,
    errors.Unavailable: "I cannot answer right now. Please try again in {wait}.",
}
"""The sentence for each error."""
WORDLESS = "Ask me something: write your question in the same message as my name."
"""The reply to a message without a word."""
NOTHING = "I have no answer to this."
"""The reply of an agent that has said nothing."""


def sentence_for(error: Error) -> str:
    """Return the sentence for an error."""
    sentence = SENTENCES[error.row]
    return sentence.format(wait=_duration(getattr(error, "retry_after", 1)))


def _duration(seconds: int) -> str:
    if seconds <= 1:
        return "a moment"
    return f"{seconds} seconds" if seconds < 120 else f"{-(-seconds // 60)} minutes"
