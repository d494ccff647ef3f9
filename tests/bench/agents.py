"""Agents that are measured; the servers under load find them through A2A_AGENT_MODULES."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run

CHUNKS = 10
CHUNK_SECONDS = 0.1
WAIT_SECONDS = 6.0
"""Long enough for all to have begun before the first ends."""


@agent(quick=True)
async def bench_quick(run: Run) -> str:
    """Awaits once and says what it is told, inside the call."""
    await asyncio.sleep(0)
    return run.text


@agent
async def bench_queued(run: Run) -> str:
    """Awaits once and says what it is told, as a run."""
    await asyncio.sleep(0)
    return run.text


@agent
async def bench_waiting(run: Run) -> str:
    """Waits for another service, as most agents do."""
    await asyncio.sleep(WAIT_SECONDS)
    return "waited"


@agent
async def bench_stream(run: Run) -> AsyncIterator[Any]:
    """Says a chunk every tenth of a second; the first is due after the first tenth."""
    for number in range(1, CHUNKS + 1):
        await asyncio.sleep(CHUNK_SECONDS)
        yield chunk(number)


def chunk(number: int) -> str:
    """The text of a chunk, by which a reader knows it."""
    return f"chunk {number}."


@agent(cost=("0.000001", "0.000002"))
async def bench_priced(run: Run) -> str:
    """Awaits once, reports a cost, and says what it is told, as a run."""
    await asyncio.sleep(0)
    run.spend("0.000001")
    return run.text


@agent(cost=("0.000001", "0.000002"), quick=True)
async def bench_priced_quick(run: Run) -> str:
    """Awaits once, reports a cost, and says what it is told, inside the call."""
    await asyncio.sleep(0)
    run.spend("0.000001")
    return run.text
