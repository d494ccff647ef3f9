"""The card of an agent as a value. Dialects encode it, doors serve it."""

from collections.abc import Iterable

from msgspec.structs import replace

from a2a import languages
from a2a.agents import Agent
from a2a.types import Card, Interface, SecurityScheme, Skill

SECURITY = {
    "bearer": SecurityScheme(http_scheme="Bearer", description="An API key as a bearer token"),
    "key": SecurityScheme(header="X-API-Key", description="An API key in a header"),
}


def describe(
    agent: Agent,
    url: str,
    reachable: Iterable[Agent] = (),
    *,
    scopes: tuple[str, ...] = (),
    unlisted: bool = False,
) -> Card:
    """Return the card of an agent at a URL, with its own skills and those of the agents reachable through it.

    `scopes` are the scopes that the methods need. `unlisted` adds the skills for authenticated callers.
    """
    needed = (*scopes, *agent.scopes)
    skills: dict[str, Skill] = {}
    for known in (agent, *reachable):
        own = (*scopes, *known.scopes)
        for skill in known.skills:
            if skill.listed or unlisted:
                skills.setdefault(
                    skill.id, replace(_with_modes(skill, known, agent), scopes=own if own != needed else ())
                )
    return Card(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        interfaces=tuple(
            Interface(url=place, binding=binding, version=version)
            # Clients of REST put the path of each call behind the URL, those of 0.x with /v1 before it.
            for binding, place in (("JSONRPC", url), ("HTTP+JSON", url.removesuffix("/jsonrpc")))
            for version in languages.SPOKEN.card_versions
        ),
        skills=tuple(skills.values()),
        input_modes=agent.input_modes,
        output_modes=agent.output_modes,
        extensions=agent.extensions,
        push_notifications=True,
        extended_card=True,
        security_schemes=SECURITY,
        scopes=needed,
    )


def _with_modes(skill: Skill, its: Agent, agent: Agent) -> Skill:
    """Return the skill with the media types of its agent, where they differ from the card's."""
    if not skill.input_modes and its.input_modes != agent.input_modes:
        skill = replace(skill, input_modes=its.input_modes)
    if not skill.output_modes and its.output_modes != agent.output_modes:
        skill = replace(skill, output_modes=its.output_modes)
    return skill
