"""The agent `execution`, which has its tasks executed by the execution zone."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from a2a.agents import define, registry
from a2a.media import ANYTHING
from a2a.run import Run

NAME = "execution"
IN_PROCESS = "in-process"
SPARE = 30.0
"""Seconds of the agent beyond A2A_EXECUTION_SECONDS, so that a late execution fails in its own words."""


def register() -> None:
    """Register the agent, if this deployment has an execution zone. Raises ImproperlyConfigured."""
    if not settings.A2A_EXECUTION:
        return
    if settings.A2A_EXECUTION == IN_PROCESS and settings.A2A_EXECUTION_AGENT in {"", NAME}:
        raise ImproperlyConfigured(
            "A2A_EXECUTION=in-process needs A2A_EXECUTION_AGENT: the name of another agent of this deployment"
        )
    if settings.A2A_EXECUTION == "queue" and not (settings.A2A_ZONE_QUEUE and settings.A2A_ZONE_SECRET):
        raise ImproperlyConfigured("A2A_EXECUTION=queue needs A2A_ZONE_QUEUE and A2A_ZONE_SECRET")
    options = {
        "name": NAME,
        "description": "Answers messages by an agent of the execution zone.",
        "input_modes": [ANYTHING],
        "output_modes": [ANYTHING],
        "timeout": settings.A2A_EXECUTION_SECONDS + SPARE,
        "attempts": 5,
        "backoff": 1.0,
    }
    registry.add(define(pass_on, options))


async def pass_on(run: Run) -> AsyncIterator[Any]:
    """Pass the message on, and yield the answer while it grows."""
    from tasks_app.zones.passage import Passage  # loads the HTTP client, which other deployments never need

    async with aclosing(Passage(run).actions()) as actions:
        async for action in actions:
            yield action
