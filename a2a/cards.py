"""The card of an agent as a value. Dialects encode it, and doors serve it."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from a2a import languages
from a2a.agents import Agent
from a2a.types import SOCKET_BINDING, Card, Interface, SecurityScheme, Skill


def describe(
    agent: Agent,
    url: str,
    reachable: Iterable[Agent] = (),
    *,
    security: Mapping[str, SecurityScheme],
    scopes: tuple[str, ...] = (),
    all_skills: bool = False,
) -> Card:
    """Return the card of an agent at a URL, with its own skills and those of the agents reachable through it.

    `security` are the ways to authenticate, by name, and `scopes` the scopes that the methods need. `all_skills` adds
    the skills that public cards do not show.
    """
    card_scopes = (*scopes, *agent.scopes)
    skills: dict[str, Skill] = {}
    for owner in (agent, *reachable):
        own = (*scopes, *owner.scopes)
        for skill in owner.skills:
            if skill.listed or all_skills:
                skills.setdefault(
                    skill.id, replace(_with_modes(skill, owner, agent), scopes=own if own != card_scopes else ())
                )
    return Card(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        interfaces=_interfaces(url),
        skills=tuple(skills.values()),
        input_modes=agent.input_modes,
        output_modes=agent.output_modes,
        extensions=agent.extensions,
        push_notifications=True,
        extended_card=True,
        security_schemes=dict(security),
        scopes=card_scopes,
    )


def _interfaces(url: str) -> tuple[Interface, ...]:
    """Return the interfaces of an agent with JSON-RPC at this URL. Others stand beside it."""
    place = url.removesuffix("/jsonrpc")
    return (
        *(
            Interface(url=where, binding=binding, version=version)
            # Clients of REST append the path of each call to the URL; those of 0.x append /v1 first.
            for binding, where in (("JSONRPC", url), ("HTTP+JSON", place))
            for version in languages.ALL.card_versions
        ),
        # Last, and for 1.0 alone, so that clients of other bindings choose as before.
        Interface(url=f"ws{place.removeprefix('http')}/ws", binding=SOCKET_BINDING, version="1.0"),
    )


def _with_modes(skill: Skill, owner: Agent, agent: Agent) -> Skill:
    """Return the skill with the media types of its owner, where they differ from those of the card's agent."""
    if not skill.input_modes and owner.input_modes != agent.input_modes:
        skill = replace(skill, input_modes=owner.input_modes)
    if not skill.output_modes and owner.output_modes != agent.output_modes:
        skill = replace(skill, output_modes=owner.output_modes)
    return skill
