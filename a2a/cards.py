"""Describe an agent: its card as a value. Dialects give it its shape, doors serve it."""

from collections.abc import Iterable

from a2a.agents import Agent
from a2a.types import Card, Interface, SecurityScheme

SECURITY = {
    "bearer": SecurityScheme(http_scheme="Bearer", description="An API key as a bearer token"),
    "apiKey": SecurityScheme(header="X-API-Key", description="An API key in a header"),
}
VERSIONS = ("1.0", "0.3")
"""The versions that cards list for the one URL; 0.2 has a card of its own (fact sheet 6.3)."""


def describe(agent: Agent, url: str, reachable: Iterable[Agent] = ()) -> Card:
    """The card of an agent at a URL, with the skills of those that can be reached through it besides its own."""
    skills = [*agent.skills]
    known = {skill.id for skill in skills}
    for other in reachable:
        skills += [skill for skill in other.skills if skill.id not in known]
        known |= {skill.id for skill in other.skills}
    return Card(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        interfaces=tuple(Interface(url=url, binding="JSONRPC", version=version) for version in VERSIONS),
        skills=tuple(skills),
        input_modes=("text/plain", "application/json"),
        output_modes=("text/plain", "application/json"),
        security_schemes=SECURITY,
    )
