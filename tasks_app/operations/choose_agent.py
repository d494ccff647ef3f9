"""The agent that a message is for."""

from django.conf import settings

from a2a.agents import Agent, registry
from a2a.errors import InvalidParams, UnknownAgent
from a2a.requests import SendMessage
from tasks_app.operations.operation import Context


def choose_agent(request: SendMessage, context: Context) -> Agent:
    """Return the agent of the address, else the one or the skill that the metadata names, else the default. Raises
    UnknownAgent: an unknown name is never a silent default."""
    metadata = request.metadata or {}
    if context.agent is not None:
        return _existing(registry.get(context.agent), agent=context.agent)
    if "agent" in metadata:
        name = _text(metadata["agent"], "metadata.agent")
        return _existing(registry.get(name), agent=name)
    if "skill" in metadata:
        skill = _text(metadata["skill"], "metadata.skill")
        return _existing(registry.with_skill(skill), skill=skill)
    return _existing(registry.get(settings.A2A_DEFAULT_AGENT), agent=settings.A2A_DEFAULT_AGENT)


def _existing(candidate: Agent | None, **wish: str) -> Agent:
    if candidate is None:
        raise UnknownAgent(**{kind: name[:64] for kind, name in wish.items()})
    return candidate


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidParams((field, "must be a string"))
    return value
