"""The permissions of a caller beside its scopes, for agents, skills, phases of workflows, batch operations and
namespaces of the memory.

An agent that a caller may not use is to that caller as one that does not exist.
"""

from a2a.agents import Agent, registry
from a2a.errors import PermissionDenied
from tasks_app.callers.access import Caller
from tasks_app.callers.rules import Kind, permit

QUOTE = 64
"""Characters of a name that an error repeats."""


def is_permitted(caller: Caller, kind: Kind, name: str) -> bool:
    """Return whether the caller may use a name of a kind."""
    return not caller.rules or permit(caller.rules, kind, name)


def check_permission(caller: Caller, kind: Kind, name: str) -> None:
    """Check that the caller may use a name of a kind, whose existence is no secret. Raises PermissionDenied."""
    if not is_permitted(caller, kind, name):
        raise PermissionDenied(kind=kind, name=name[:QUOTE])


def may_ask(caller: Caller, agent: Agent, skill: str | None) -> bool:
    """Return whether the caller may send a message to an agent.

    A message that names no skill of the agent may be for each of them, so the caller needs them all.
    """
    return not denial_of(caller, agent, skill)


def denial_of(caller: Caller, agent: Agent, skill: str | None) -> str:
    """Return why the caller may not send a message to an agent, for the log alone; an empty text if it may."""
    if not _is_for(caller, agent.name):
        return "the credential is for other agents"
    if not caller.rules:
        return ""
    offers = [own.id for own in agent.skills]
    skills: list[tuple[Kind, str]] = [("skill", own) for own in ([skill] if skill in offers else offers)]
    needs: list[tuple[Kind, str]] = [("agent", agent.name), *skills]
    lacking = (f"the {kind} {name}" for kind, name in needs if not is_permitted(caller, kind, name))
    return next((f"no permission allows {what}, or one denies it" for what in lacking), "")


def may_see(caller: Caller, name: str) -> bool:
    """Return whether the caller may know of an agent: it may use the agent, and one of its skills at least."""
    if not _is_for(caller, name):
        return False
    if not caller.rules:
        return True
    agent = registry.get(name)
    skills = [own.id for own in agent.skills] if agent else []
    any_skill = not skills or any(is_permitted(caller, "skill", skill) for skill in skills)
    return is_permitted(caller, "agent", name) and any_skill


def _is_for(caller: Caller, agent: str | None) -> bool:
    """Return whether the credential of the caller is valid for an agent, or for the whole server.

    The door looks at the address alone, and some operations choose agents beside that of the address.
    """
    return caller.agents is None or agent in caller.agents


def shows(caller: Caller, address: str | None, agent: str | None) -> bool:
    """Return whether an address shows the caller's tasks of an agent, or the workflows that began at its address.

    `address` is the agent that the address names; None for the address of the whole server. `agent` is None for a
    workflow that began there. That address shows all that the caller's credential is valid for.
    """
    if address is None:
        return _is_for(caller, agent)
    return address == agent and may_see(caller, address)
