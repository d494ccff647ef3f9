"""Whether a message and an agent fit: scopes, media types both ways, extensions. Nothing is looked up for it."""

from a2a.agents import Agent
from a2a.errors import ContentTypeNotSupported
from a2a.extensions import activate
from a2a.media import media_type_of
from a2a.requests import SendMessage
from a2a.run import Preferences
from tasks_app.callers.access import check_scope, for_agents
from tasks_app.operations.operation import Context

SHOWN = 100
"""Characters of what a caller sent that an error repeats."""


def fit(request: SendMessage, agent: Agent, context: Context) -> Preferences:
    """Return the preferences of the caller, checked in the order of docs/protocol.md#order-of-checks.

    Raises MissingScope, ContentTypeNotSupported and ExtensionSupportRequired.
    """
    for scope in agent.scopes:
        check_scope(context.caller, scope)
    _check_media(request, agent)
    if agent.extensions:
        context.activated = activate(agent.extensions, request.extensions)
    return Preferences(
        accepts=request.accepted_output_modes, extensions=context.activated, caller=for_agents(context.caller)
    )


def _check_media(request: SendMessage, agent: Agent) -> None:
    """Every part must be of a type that the agent takes, and one type that the caller takes must be the agent's."""
    for place, part in enumerate(request.message.parts):
        kind = media_type_of(part)
        if not agent.takes.has(kind):
            raise ContentTypeNotSupported(
                part=f"message.parts[{place}]", mediaType=_clean(kind), supported=str(agent.takes)
            )
    wanted = request.accepted_output_modes
    if wanted and not agent.gives.meet(wanted):
        raise ContentTypeNotSupported(
            field="configuration.acceptedOutputModes", mediaType=_clean(", ".join(wanted[:10])),
            supported=str(agent.gives),
        )  # fmt: skip


def _clean(text: str) -> str:
    return "".join(letter for letter in text[:SHOWN] if letter.isprintable())
