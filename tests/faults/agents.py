"""Agents for faults; a server under test loads them through A2A_AGENT_MODULES."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
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
async def counted(run: Run, file: str, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Writes down that it was called and as which attempt; tried once only."""
    note(file, run)
    yield f"attempt {run.attempt} "
    await asyncio.sleep(seconds)
    yield "and ended"


@agent(attempts=3)
async def counted_thrice(run: Run, file: str, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Writes down the same, sleeps in its first attempt, and ends in its second."""
    note(file, run)
    yield f"attempt {run.attempt} "
    if run.attempt == 1:
        await asyncio.sleep(seconds)
    yield "and ended"


def note(file: str, run: Run) -> None:
    """One line for each call of an agent."""
    with Path(file).open("a", encoding="ascii") as lines:
        lines.write(f"{run.task_id} {run.attempt}\n")


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


@agent(timeout=1)
def hung(run: Run, seconds: float = 600.0) -> str:
    """Blocks its thread far beyond its timeout."""
    time.sleep(seconds)
    return "at last"


@agent
def brief(run: Run, seconds: float = 0.02) -> dict[str, int]:
    """Takes a thread for a moment, and says of which process."""
    time.sleep(seconds)
    return {"pid": os.getpid()}


@agent(timeout=60)
async def blocker(run: Run, seconds: float = 45.0) -> str:
    """Blocks its event loop, as a call that is not async does."""
    time.sleep(seconds)  # noqa: ASYNC251  # that is the fault
    return "at last"


@agent(timeout=2)
async def blocks_too_long(run: Run, seconds: float = 8.0) -> AsyncIterator[Any]:
    """Blocks its event loop beyond its timeout."""
    yield "begun"
    await asyncio.sleep(0.1)
    time.sleep(seconds)  # noqa: ASYNC251  # that is the fault
    yield " and ended"


@agent
async def reporter(run: Run, updates: int = 300, size: int = 300, pause: float = 0.0) -> AsyncIterator[Any]:
    """Reports its progress again and again."""
    for place in range(updates):
        yield run.status(f"{place} ".ljust(size, "x"))
        if pause:
            await asyncio.sleep(pause)
