"""Agents that do not end when they are told to, for faults."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run


@agent(timeout=1)
async def ignores_cancel(run: Run, times: int = 1000) -> AsyncIterator[Any]:
    """Goes on after so many cancellations, far beyond its timeout."""
    yield "begun"
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):  # that is the fault
            await asyncio.sleep(600)
    await asyncio.sleep(600)
