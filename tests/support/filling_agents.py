"""Agents that write without end, for tests of the limits of a task."""

from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run


async def _fill(run: Run) -> AsyncIterator[Any]:
    """Write a thousand actions of the kind that the message names, each with a thousand characters."""
    text = "x" * 1_000
    for _ in range(1_000):
        match run.text:
            case "data":
                yield run.artifact({"text": text})
            case "metadata":
                yield run.artifact("short", metadata={"text": text})
            case _:
                yield run.status(text)


@agent
async def fills(run: Run) -> AsyncIterator[Any]:
    """Writes without pauses what is no text of an artifact."""
    async for action in _fill(run):
        yield action


@agent(quick=True)
async def fills_quickly(run: Run) -> AsyncIterator[Any]:
    """Writes the same within the call."""
    async for action in _fill(run):
        yield action
