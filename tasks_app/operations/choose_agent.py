"""The choice of the agent that a message is for."""

from django.conf import settings

from a2a.agents import Agent, registry
from a2a.errors import InvalidParams, UnknownAgent
from a2a.requests import SendMessage
from tasks_app.operations.operation import Context


def choose_agent(request: SendMessage, context: Context) -> Agent:
    """Return the agent of the address, else the one that the metadata names by agent or skill, else the default.

    Raises UnknownAgent: no unknown name leads to the default agent.
    """
    metadata = request.metadata or {}
    if context.agent is not None:
        return _require(registry.get(context.agent), agent=context.agent)
    if "agent" in metadata:
        name = _text(metadata["agent"], "metadata.agent")
        return _require(registry.get(name), agent=name)
    if "skill" in metadata:
        skill = _text(metadata["skill"], "metadata.skill")
        # The skills of a relay are those that a remote agent claims. They must not attract calls of our own agents.
        return _require(registry.with_skill(skill, last=settings.A2A_RELAYS), skill=skill)
    return _require(registry.get(settings.A2A_DEFAULT_AGENT), agent=settings.A2A_DEFAULT_AGENT)


def _require(candidate: Agent | None, **name: str) -> Agent:
    """Return the agent. Raises UnknownAgent, with the name that the caller gave."""
    if candidate is None:
        raise UnknownAgent(**{kind: text[:64] for kind, text in name.items()})
    return candidate


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidParams((field, "must be a string"))
    return value
