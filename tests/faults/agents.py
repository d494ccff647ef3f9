"""Agents for faults; a server under test loads them through A2A_AGENT_MODULES."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run
from a2a.types import Part


@agent
async def once(run: Run, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Begins, then takes its time; tried once only."""
    yield "begun "
    await asyncio.sleep(seconds)
    yield "and ended"


@agent
async def sleeper(run: Run, seconds: float = 60.0) -> str:
    """Sleeps, and says nothing before it wakes."""
    await asyncio.sleep(seconds)
    return "awake"


@agent
async def chatty(run: Run, chunks: int = 1000, size: int = 16_384, pause: float = 0.0) -> AsyncIterator[Any]:
    """Talks a lot."""
    for place in range(chunks):
        yield run.artifact(f"{place:08} ".ljust(size, "x"), id="talk")
        if pause:
            await asyncio.sleep(pause)


@agent
def stubborn(run: Run, seconds: float = 60.0) -> str:
    """Blocks its thread, and cannot be interrupted."""
    time.sleep(seconds)
    return "done"


@agent(queue="cpu", attempts=2)
def burns(run: Run, seconds: float = 1.0) -> dict[str, int]:
    """Keeps a core busy, and says which process it was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return {"pid": os.getpid()}


@agent(priority=5)
async def urgent(run: Run) -> str:
    """Goes before the others of its queue."""
    return "done"


@agent(input_modes=["*/*"], output_modes=["*/*"])
async def maker(run: Run, size: int = 0, pause: float = 0.0) -> AsyncIterator[Any]:
    """Makes a file, or tells how large those are that it is given."""
    for part in run.files:
        yield f"{len(await run.read(part))} "
    if size:
        yield run.artifact(Part(raw=os.urandom(size), filename="made.bin"), id="made")
        await asyncio.sleep(pause)
