"""Agents of phases and of batches for faults: each says which attempt it is, and can be called again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run
from a2a.workflows import PHASES
from tests.faults.agents import gate, note


@agent(phases=[phase.value for phase in PHASES], attempts=20, backoff=0)
async def phased(run: Run, file: str, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Names its phase and its attempt; the first attempt then takes its time."""
    note(file, run)
    yield f"{run.metadata['sparcPhase']} by attempt {run.attempt}"
    if run.attempt == 1:
        await asyncio.sleep(seconds)


@agent(attempts=20, backoff=0)
async def piece(run: Run, number: int, until: str = "") -> AsyncIterator[Any]:
    """Says its number, at the beginning and at the end of its work, which may last until that file exists."""
    yield f"{number} begun, "
    await gate(until, 300 if until else 0.02)
    yield f"{number} ended"


@agent(attempts=20, backoff=0)
async def repeats(run: Run) -> AsyncIterator[Any]:
    """Says what it was told, in two pieces, whether that came as a text or as the params of a call."""
    text = run.text or run.message.parts[0].data["text"]
    yield "heard "
    await asyncio.sleep(0.01)
    yield text
