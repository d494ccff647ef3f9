"""The choice of the agent that a message is for."""

import logging
from collections.abc import Mapping
from functools import partial

from django.conf import settings

from a2a.agents import Agent, registry
from a2a.errors import InvalidParams, UnknownAgent
from a2a.requests import SendMessage
from tasks_app.callers.access import Caller
from tasks_app.callers.permissions import denial_of, is_permitted, may_ask, may_see
from tasks_app.event_log import Head
from tasks_app.operations.operation import Context

log = logging.getLogger(__name__)


def choose_agent(request: SendMessage, context: Context) -> Agent:
    """Return the agent of the address, else the one that the request names, else the one that its metadata names by
    agent or skill, else the default.

    Raises UnknownAgent: no unknown name leads to the default agent, and an agent that the caller may not use is as
    unknown as one that does not exist. At the address of one agent all others are unknown.
    """
    metadata, skill = request.metadata or {}, skill_of(request)
    may = partial(may_ask, context.caller, skill=skill)
    require = partial(_require, context.caller, skill)
    if request.agent is not None:
        is_elsewhere = context.agent not in (None, request.agent)
        return require(None if is_elsewhere else registry.get(request.agent), {"agent": request.agent})
    if context.agent is not None:
        return require(registry.get(context.agent), {"agent": context.agent})
    if "agent" in metadata:
        name = _text(metadata["agent"], "metadata.agent")
        return require(registry.get(name), {"agent": name})
    if "skill" in metadata:
        skill = _text(metadata["skill"], "metadata.skill")
        # The skills of a relay are those that a remote agent claims. They must not attract calls of our own agents.
        return require(registry.with_skill(skill, last=settings.A2A_RELAYS, suits=may), {"skill": skill})
    return require(registry.get(settings.A2A_DEFAULT_AGENT), {"agent": settings.A2A_DEFAULT_AGENT})


def find_by_name(caller: Caller, name: str) -> Agent | None:
    """Return the agent of that name, or else one with a skill of that id, among those that the caller may ask; None if
    there is none."""
    may = partial(may_ask, caller, skill=name)
    agent = registry.get(name)
    if agent is not None and may(agent):
        return agent
    return registry.with_skill(name, last=settings.A2A_RELAYS, suits=may)


def address_agent(context: Context) -> Agent:
    """Return the agent of the address, or else the default agent. Raises UnknownAgent."""
    name = context.agent or settings.A2A_DEFAULT_AGENT
    agent = registry.get(name)
    if agent is None or not may_see(context.caller, name):
        raise UnknownAgent(agent=name[:64])
    return agent


def check_agent_of(task: Head, request: SendMessage, caller: Caller) -> None:
    """Check that the caller may still use the agent of its task. Raises UnknownAgent."""
    agent = registry.get(task.agent)
    if not (may_ask(caller, agent, skill_of(request)) if agent else is_permitted(caller, "agent", task.agent)):
        raise UnknownAgent(agent=task.agent)


def skill_of(request: SendMessage) -> str | None:
    """Return the skill that a message names; None for one that names none."""
    skill = (request.metadata or {}).get("skill")
    return skill if isinstance(skill, str) else None


def _require(caller: Caller, skill: str | None, candidate: Agent | None, name: Mapping[str, str]) -> Agent:
    """Return the agent. Raises UnknownAgent, with the name that the caller gave."""
    denial = denial_of(caller, candidate, skill) if candidate else ""
    if denial and candidate:  # The caller must not know more than that the agent is unknown.
        log.info(
            "%s/%s: the agent %s is unknown to this caller: %s", caller.tenant, caller.name, candidate.name, denial
        )
    if candidate is None or denial:
        raise UnknownAgent(**{kind: text[:64] for kind, text in name.items()})
    return candidate


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidParams((field, "must be a string"))
    return value
