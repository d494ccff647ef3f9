"""Checks that a message and an agent fit: scopes, media types in both directions, extensions. Nothing is looked up."""

from a2a.agents import Agent
from a2a.errors import ContentTypeNotSupported, InvalidParams
from a2a.extensions import activate
from a2a.media import media_type_of
from a2a.preferences import Preferences
from a2a.requests import SendMessage
from a2a.tokens import TOKEN_BYTES, count_tokens
from tasks_app.callers.access import check_scopes, for_agents
from tasks_app.operations.operation import Context

QUOTE = 100
"""Characters of a caller's text that an error repeats."""


def fit(request: SendMessage, agent: Agent, context: Context) -> Preferences:
    """Return the preferences of the caller, checked in the order of docs/protocol.md#order-of-checks.

    Raises MissingScope, ContentTypeNotSupported, InvalidParams and ExtensionSupportRequired.
    """
    check_scopes(context.caller, agent.scopes, context.spelling)
    _check_media(request, agent)
    if agent.max_input_tokens is not None:
        _check_tokens(request, agent.max_input_tokens)
    if agent.extensions:
        context.extensions = activate(agent.extensions, request.extensions)
    return Preferences(
        accepts=request.accepted_output_modes, extensions=context.extensions, caller=for_agents(context.caller)
    )


def _check_media(request: SendMessage, agent: Agent) -> None:
    """Check that the agent takes every part and gives a type that the caller accepts.

    Raises ContentTypeNotSupported.
    """
    for place, part in enumerate(request.message.parts):
        kind = media_type_of(part)
        if not agent.takes.has(kind):
            facts = {"mediaType": _clean(kind), "supported": str(agent.takes)}
            detail = "the agent accepts {supported}, not {mediaType}".format_map(facts)
            raise ContentTypeNotSupported(part=f"message.parts[{place}]", **facts, detail=detail)
    modes = request.accepted_output_modes
    if modes and not agent.gives.meet(modes):
        facts = {"mediaType": _clean(", ".join(modes[:10])), "supported": str(agent.gives)}
        detail = "the agent returns {supported}, and the caller accepts {mediaType}".format_map(facts)
        raise ContentTypeNotSupported(field="configuration.acceptedOutputModes", **facts, detail=detail)


def _check_tokens(request: SendMessage, most: int) -> None:
    """Check that the message has no more tokens than the agent takes. Raises InvalidParams."""
    tokens = count_tokens(request.message)
    if tokens > most:
        text = f"has about {tokens} tokens, counted as {TOKEN_BYTES} bytes each, and the agent takes {most} at most"
        raise InvalidParams(("message.parts", text))


def _clean(text: str) -> str:
    return "".join(letter for letter in text[:QUOTE] if letter.isprintable())
