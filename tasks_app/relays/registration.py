"""The agents of the relays: one for each item of A2A_RELAYS, described by the card of the remote agent."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from a2a.agents import Agent, define, registry
from a2a.media import ANYTHING
from a2a.run import Run
from a2a.types import Json
from tasks_app.relays import nudges
from tasks_app.relays.options import RelayOptions, relays

BACKOFF = 1.0
UNREAD = "Passes messages on to an agent on another server, whose card has not been read yet."
"""The description of a relay before the first reading of its card."""


def register() -> None:
    """Register an agent for each relay, without its card."""
    nudges.listen()
    for relay in relays():
        registry.add(agent_of(relay, {}))


def agent_of(relay: RelayOptions, card: Json) -> Agent:
    """Return the agent of a relay. The card's values are options of @agent."""
    options = {"description": UNREAD, "input_modes": [ANYTHING], "output_modes": [ANYTHING]} | card
    fixed = {"name": relay.name, "timeout": relay.timeout, "attempts": relay.attempts, "backoff": BACKOFF}
    return define(_function_of(relay), options | fixed)


def _function_of(relay: RelayOptions) -> Callable[[Run], AsyncIterator[Any]]:
    async def pass_on(run: Run) -> AsyncIterator[Any]:
        from tasks_app.relays.passage import Passage  # loads the client, which processes without relays never need

        async with aclosing(Passage(run, relay).actions()) as actions:
            async for action in actions:
                yield action

    return pass_on
